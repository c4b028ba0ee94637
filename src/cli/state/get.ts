import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { type CapabilityDescriptor, emergentCapability } from '../../discovery/emergent.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore, StoredRecord } from '../../lib/record-store.ts';
import { type CliIo, EXIT } from '../io.ts';
import { type ListedKind, STATE_KINDS, lookupKind, nounOf } from '../objects/kinds.ts';
import { parseLabelSelector } from '../objects/label-selector.ts';
import { isDataFormat, type ListFormat } from '../objects/output-formats.ts';
import { printObjects } from '../objects/print-objects.ts';
import { parseTargets } from '../objects/targets.ts';
import { matchesTool, listStateTools } from './state-tools.ts';
import { formatAge, table } from '../table.ts';
import { notFound, openStateRecords } from './state-records.ts';
import { SESSIONS } from '../../tools/session-path.ts';

export interface GetOptions {
  /** Kinds and names as typed; see `parseTargets`. */
  targets: readonly string[];
  selector?: string;
  watch?: boolean;
  state: string;
  output: ListFormat;
}

interface FoundKind {
  readonly kind: ListedKind;
  readonly records: readonly StoredRecord[];
}

/** Lists kinds, or named objects of one kind. Only reads files, so it needs no lock. */
export async function get(options: GetOptions, io: CliIo): Promise<number> {
  if (options.watch === true) {
    throw new TemperError(
      'TEMPER_USAGE',
      '--watch works on a cluster; `temper run` prints what happens in a state folder',
    );
  }
  const { kinds, names } = parseTargets(options.targets, STATE_KINDS);
  const lookedUp = kinds.map(lookupKind);
  const matches = options.selector === undefined ? undefined : parseLabelSelector(options.selector);
  const records = await openStateRecords(options.state, io);
  const found: FoundKind[] = [];
  for (const kind of lookedUp) {
    const all = await listKind(records, kind.collection);
    const named = names.length === 0 ? all : names.flatMap((name) => byName(kind, name, all));
    found.push({ kind, records: matches === undefined ? named : named.filter(({ value }) => matches(value)) });
  }
  if (isDataFormat(options.output)) {
    const objects = found.flatMap(({ kind, records: some }) =>
      some.map(({ name, value }) => ({ kind: kind.qualifiedName, name, value })),
    );
    printObjects(objects, options.output, names.length === 1 && objects.length === 1, io);
  } else {
    printTables(found, options, io);
  }
  return EXIT.ok;
}

function byName(kind: ListedKind, name: string, all: readonly StoredRecord[]): StoredRecord[] {
  const found = all.filter((record) => matchesTool(record, name));
  if (found.length === 0) throw notFound(kind.collection, name, all);
  return found;
}

/** One table per kind that has objects. Beside other kinds, names carry their kind. */
function printTables(found: readonly FoundKind[], { output, state }: GetOptions, io: CliIo): void {
  const filled = found.filter(({ records }) => records.length > 0);
  if (filled.length === 0) {
    const [only, other] = found;
    const what = only === undefined || other !== undefined ? 'objects' : nounOf(only.kind.collection);
    io.out(`No ${what} in ${printable(state, 200)}.\n`);
    return;
  }
  const now = new Date();
  const tables = filled.map(({ kind, records }) => {
    const wide = output === 'wide' ? kind.wide : [];
    const prefix = found.length > 1 ? `${kind.qualifiedName}/` : '';
    const rows = records.map(({ name, value }) => [
      `${prefix}${name}`,
      ...kind.columns(value, (since) => formatAge(since, now)),
      ...wide.map(({ cell }) => cell(value)),
    ]);
    return table([...kind.headings, ...wide.map(({ heading }) => heading)], rows);
  });
  io.out(tables.join('\n'));
}

/** All objects of a kind in the state folder. */
export async function listKind(records: RecordStore, collection: string): Promise<StoredRecord[]> {
  if (collection === 'tools') return listStateTools(records);
  if (collection === 'capabilities') return discovered(await records.list('tools'));
  if (collection === SESSIONS) return listSessions(records);
  if (collection !== 'rejected') return records.list(collection);
  const agents = await records.list('agents');
  const attempts = agents.map(({ name, value }) => {
    const namespace = textAt(value, ['metadata', 'namespace'], 'default');
    return records.list(`rejected/${namespace}/${name}`);
  });
  return (await Promise.all(attempts)).flat();
}

/** The sessions of all agents, by their ids; two agents may have a session with the same id. */
async function listSessions(records: RecordStore): Promise<StoredRecord[]> {
  const sessions = await records.list(SESSIONS);
  return sessions.map(({ name, value }) => ({ name: textAt(value, ['session'], name), value }));
}

/** The capabilities that agents of this state folder can discover outside their own session. */
function discovered(tools: readonly StoredRecord[]): StoredRecord[] {
  return tools.flatMap(({ value }) => {
    const capability = capabilityOf(value);
    return capability === undefined ? [] : [{ name: capability.id, value: { ...capability } }];
  });
}

/** Undefined for a document that is no tool: it has no capability, and must not hide those of the others. */
function capabilityOf(value: Json): CapabilityDescriptor | undefined {
  try {
    return emergentCapability(value as unknown as EmergentTool);
  } catch {
    return undefined;
  }
}
