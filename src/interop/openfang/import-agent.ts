import { dottedPath, type FieldPath } from '../../api/findings.ts';
import { API_VERSION } from '../../api/names.ts';
import { TOOLS_OF_GRANTS } from '../../api/checks/warnings.ts';
import { describeNotInForce, fieldsNotInForce } from '../../api/not-in-force.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../lib/json.ts';
import { suggestName } from '../../lib/suggest.ts';
import { importCapabilities, importEvents, importSchedules, importSpawn } from './capabilities.ts';
import { importDescription, importMetadata, importModule } from './identity.ts';
import type { ImportContext } from './import-context.ts';
import { type ImportedKey, ImportLog, isLimiting, leavesOf } from './keys/import-log.ts';
import { importLimits } from './limits.ts';
import { isIgnoredByOpenFang, knownSiblings, listedKey } from './keys/listed-keys.ts';
import { withPlacedKeys } from './source/misplaced-keys.ts';
import { importModels } from './models.ts';
import { importPrompt } from './prompt.ts';
import { importRouting } from './routing.ts';
import { importSchedule } from './schedule/schedule.ts';
import { importTools } from './tools.ts';

export interface ImportedAgent {
  readonly agent: Agent;
  readonly keys: readonly ImportedKey[];
  /** Why the file is not imported; empty when it is. */
  readonly problems: readonly string[];
}

/** Maps one manifest of OpenFang to an Agent, and reports what became of each of its keys. Pure. */
export function importAgent(source: JsonObject, fallbackName: string, context: ImportContext): ImportedAgent {
  const log = new ImportLog();
  const { manifest, tables } = withPlacedKeys(source);
  const agent = toAgent(manifest, fallbackName, context, log);
  logOtherKeys(manifest, log);
  const placed = inOrder(log.keys, tables, source).map((entry) => withPlace(entry, tables));
  return { agent, keys: withEffect(placed, agent.spec, context), problems: log.problems };
}

function toAgent(source: JsonObject, fallbackName: string, context: ImportContext, log: ImportLog): Agent {
  const metadata = importMetadata(source, fallbackName, log);
  importModule(source, log);
  const description = importDescription(source, log);
  const models = importModels(source, log);
  const routing = importRouting(source, models.primary, log);
  const model = { ...models, ...(routing === undefined ? {} : { routing }) };
  const { granted, denied, profile } = importTools(source, context, log);
  const system = importPrompt(source, granted, context, log);
  const grants = {
    ...(granted.length === 0 ? {} : { tools: [...granted] }),
    ...importCapabilities(source, profile, context, log),
    ...importSchedules(granted, profile, context, log),
    ...importEvents(granted, profile, context, log),
  };
  const schedule = importSchedule(source, log);
  const children = importSpawn(source, profile, log);
  const limits = importLimits(source, granted, context, log);
  return {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata,
    spec: {
      ...(description === undefined ? {} : { description }),
      trustPolicyRef: { name: context.policy },
      model,
      prompt: { system },
      ...(Object.keys(grants).length === 0 ? {} : { grants }),
      ...(denied.length === 0 ? {} : { denyTools: [...denied] }),
      ...limits,
      ...(children === undefined ? {} : { children }),
      ...(schedule === undefined ? {} : { schedule }),
    },
  };
}

/** Every value that no part has read: known keys without a field, and unknown ones. */
function logOtherKeys(source: JsonObject, log: ImportLog): void {
  for (const path of leavesOf(source)) {
    if (log.covers(path)) continue;
    const listed = listedKey(path);
    if (listed !== undefined) log.add(path, listed.result, { note: listed.note });
    else logUnknown(path, log);
  }
}

function logUnknown(path: FieldPath, log: ImportLog): void {
  const near = suggestName(String(path.at(-1)), knownSiblings(path));
  const note = near === undefined ? 'no key of OpenFang' : `no key of OpenFang; did you mean ${near}?`;
  if (isLimiting(path)) log.refuseFile(path, `${note}; a mistyped limit must not mean no limit`);
  else log.add(path, 'Unknown', { note });
}

/** The key as the file has it, and what OpenFang does with it. */
function withPlace(
  { path, ...entry }: ImportedKey & { path: FieldPath },
  tables: ReadonlyMap<string, FieldPath>,
): ImportedKey {
  const table = tables.get(String(path[0]));
  const key = table === undefined ? entry.key : dottedPath([...table, ...path]);
  const notes = [
    ...(entry.note === undefined ? [] : [entry.note]),
    ...(table === undefined ? [] : [`stands below [${dottedPath(table)}], where OpenFang does not read it`]),
    ...(isIgnoredByOpenFang(path) ? ['OpenFang itself does not read this key'] : []),
  ];
  return { ...entry, key, ...(notes.length === 0 ? {} : { note: notes.join('; ') }) };
}

/** The keys in the order of the file; those that the file does not have at the end. */
function inOrder(
  keys: ImportLog['keys'],
  tables: ReadonlyMap<string, FieldPath>,
  source: JsonObject,
): ImportLog['keys'] {
  const places = new Map<string, number>();
  for (const [index, leaf] of leavesOf(source).entries()) {
    for (let length = 1; length <= leaf.length; length += 1) {
      const place = JSON.stringify(leaf.slice(0, length));
      if (!places.has(place)) places.set(place, index);
    }
  }
  const positionOf = ({ path }: { path: FieldPath }): number =>
    places.get(JSON.stringify([...(tables.get(String(path[0])) ?? []), ...path])) ?? Number.MAX_SAFE_INTEGER;
  return keys.toSorted((a, b) => positionOf(a) - positionOf(b));
}

/** Marks the keys whose field has no effect yet, or none without a tool that uses it. */
function withEffect(keys: readonly ImportedKey[], spec: AgentSpec, { patterns }: ImportContext): ImportedKey[] {
  const idle = fieldsNotInForce('Agent', spec);
  const unused = Object.entries(TOOLS_OF_GRANTS)
    .filter(([, tools]) => !tools.some((tool) => patterns.covers(spec.grants?.tools ?? [], tool, 'tool')))
    .map(([field]) => `spec.grants.${field}[`);
  return keys.map((entry) => {
    const { field, note } = entry;
    if (field === undefined) return entry;
    const found = idle.find((one) => field === one.field || field.startsWith(`${one.field}[`));
    const notes = [
      ...(note === undefined ? [] : [note]),
      ...(found === undefined ? [] : [describeNotInForce(found)]),
      ...(unused.some((prefix) => field.startsWith(prefix)) ? ['no tool of the agent uses it'] : []),
    ].join('; ');
    const result = found?.where === 'everywhere' ? 'NoEffectYet' : entry.result;
    return { ...entry, result, ...(notes === '' ? {} : { note: notes }) };
  });
}
