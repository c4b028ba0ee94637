import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { emergentCapability } from '../../discovery/emergent.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { textAt } from '../../lib/json.ts';
import type { RecordStore, StoredRecord } from '../../lib/record-store.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { lookupKind } from '../kinds.ts';
import { matchesTool, listStateTools } from './state-tools.ts';
import { formatAge, table } from '../table.ts';
import { stateFolder } from './state-folder.ts';

export interface GetOptions {
  kind: string;
  name?: string | undefined;
  state: string;
  output: 'text' | 'json';
}

/** Lists a kind, or one object of it. Only reads files, so it needs no lock. */
export async function get(options: GetOptions, io: CliIo): Promise<number> {
  const kind = lookupKind(options.kind);
  const records = fileRecordStore(await stateFolder(io, options.state));
  const all = await listKind(records, kind.collection);
  const chosen = options.name === undefined ? all : all.filter((record) => matchesTool(record, options.name ?? ''));
  if (options.name !== undefined && chosen.length === 0) throw notFound(kind.collection, options.name, all);
  if (options.output === 'json') {
    for (const { value } of chosen) writeJsonLine(io, value);
    return EXIT.ok;
  }
  if (chosen.length === 0) {
    io.out(`No ${kind.collection} in ${options.state}.\n`);
    return EXIT.ok;
  }
  const now = new Date();
  const rows = chosen.map(({ name, value }) => [name, ...kind.columns(value, (since) => formatAge(since, now))]);
  io.out(table(kind.headings, rows));
  return EXIT.ok;
}

/** All objects of a kind in the state folder. */
export async function listKind(records: RecordStore, collection: string): Promise<StoredRecord[]> {
  if (collection === 'tools') return listStateTools(records);
  if (collection === 'capabilities') return discovered(await records.list('tools'));
  if (collection !== 'rejected') return records.list(collection);
  const agents = await records.list('agents');
  const attempts = agents.map(({ name, value }) => {
    const namespace = textAt(value, ['metadata', 'namespace'], 'default');
    return records.list(`rejected/${namespace}/${name}`);
  });
  return (await Promise.all(attempts)).flat();
}

/** The capabilities that agents of this state folder can discover outside their own session. */
function discovered(tools: readonly StoredRecord[]): StoredRecord[] {
  return tools.map(({ value }) => {
    const capability = emergentCapability(value as unknown as EmergentTool);
    return { name: capability.id, value: { ...capability } };
  });
}

export function notFound(collection: string, name: string, all: readonly StoredRecord[]): TemperError {
  const known = all.slice(0, 10).map((record) => record.name);
  const hint = known.length === 0 ? 'there are none' : `there are: ${known.join(', ')}`;
  return new TemperError('TEMPER_NOT_FOUND', `no ${collection} named "${name}"; ${hint}`);
}
