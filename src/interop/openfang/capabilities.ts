import type { FieldPath, PatternKind } from '../../api/findings.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../lib/json.ts';
import { GrantList } from './values/grant-list.ts';
import type { ImportContext } from './import-context.ts';
import type { ImportLog } from './keys/import-log.ts';
import { namePattern } from './values/object-names.ts';
import { booleanAt, isEmptyList, type TextItem, textAt, textsAt } from './source/source-values.ts';
import { PROFILES } from './tool-names.ts';

type Grants = Omit<NonNullable<AgentSpec['grants']>, 'tools'>;

interface GrantKey {
  readonly key: string;
  readonly field: string;
  readonly kind: PatternKind;
  /** What OpenFang derives from a profile with these tools when the list is empty. */
  readonly implied: (tools: readonly string[]) => readonly string[];
  readonly convert?: (text: string) => { pattern: string; note?: string };
}

const uses = (prefix: string) => (tools: readonly string[]) =>
  tools.some((tool) => tool === '*' || tool.startsWith(prefix)) ? ['*'] : [];

const GRANT_KEYS: readonly GrantKey[] = [
  { key: 'network', field: 'spec.grants.network', kind: 'host', implied: uses('web_'), convert: hostPattern },
  {
    key: 'memory_read',
    field: 'spec.grants.memory.read',
    kind: 'key',
    implied: (tools) => (uses('memory_')(tools).length > 0 ? ['*'] : ['self.*']),
  },
  { key: 'memory_write', field: 'spec.grants.memory.write', kind: 'key', implied: () => ['self.*'] },
  {
    key: 'agent_message',
    field: 'spec.grants.messages',
    kind: 'name',
    implied: uses('agent_'),
    convert: (text) => ({ pattern: namePattern(text) }),
  },
  {
    key: 'agent_kill',
    field: 'spec.grants.kill',
    kind: 'name',
    implied: () => [],
    convert: (text) => ({ pattern: namePattern(text) }),
  },
  { key: 'shell', field: 'spec.grants.shell', kind: 'name', implied: uses('shell_'), convert: commandPattern },
];

/** In OpenFang a child has no more capabilities than its parent, so it may be started with a manifest of its own. */
export function importSpawn(source: JsonObject, profile: string | undefined, log: ImportLog): AgentSpec['children'] {
  const path: FieldPath = ['capabilities', 'agent_spawn'];
  const mayStart = booleanAt(source, path, log);
  const isImplied = mayStart === undefined && uses('agent_')(PROFILES[profile ?? ''] ?? []).length > 0;
  if (isImplied) log.add(['profile'], 'Changed', { value: profile ?? '', field: 'spec.children.inherit' });
  if (mayStart !== undefined) log.imported(path, mayStart, 'spec.children.inherit');
  return mayStart === true || isImplied ? { inherit: true } : undefined;
}

/** OpenFang lets each agent have so many jobs. */
const SCHEDULES = 50;
const EVERY_EVENT = '>';

/** An agent with the tool that makes schedules may make them in OpenFang. */
export function importSchedules(
  granted: readonly string[],
  profile: string | undefined,
  { patterns }: ImportContext,
  log: ImportLog,
): Pick<Grants, 'schedules'> {
  if (!patterns.covers(granted, 'schedule_create', 'tool')) return {};
  const path: FieldPath = profile === undefined ? ['capabilities', 'tools'] : ['profile'];
  const note = 'as many as OpenFang allows; schedules.perAgent of the policy can lower it';
  log.add(path, 'Imported', { value: SCHEDULES, field: 'spec.grants.schedules', note });
  return { schedules: SCHEDULES };
}

/** OpenFang limits no event of an agent. It has no tool that subscribes: there, users register what wakes an agent. */
export function importEvents(
  granted: readonly string[],
  profile: string | undefined,
  { patterns }: ImportContext,
  log: ImportLog,
): Pick<Grants, 'events'> {
  const has = (tool: string): boolean => patterns.covers(granted, tool, 'tool');
  const path: FieldPath = profile === undefined ? ['capabilities', 'tools'] : ['profile'];
  if (has('event_subscribe')) {
    const note =
      'no subject is granted for event_subscribe, which OpenFang does not have; name them in spec.grants.events.subscribe';
    log.add(path, 'NotImported', { value: 'event_subscribe', note });
  }
  if (!has('event_publish')) return {};
  const note = 'every subject, as in OpenFang; name those that the agent needs';
  log.add(path, 'Imported', { value: EVERY_EVENT, field: 'spec.grants.events.publish[0]', note });
  return { events: { publish: [EVERY_EVENT] } };
}

/** Grants of the agent beside its tools. An execution policy that forbids a kind of access leaves its list empty. */
export function importCapabilities(
  source: JsonObject,
  profile: string | undefined,
  context: ImportContext,
  log: ImportLog,
): Grants {
  const forbidden = forbiddenKeys(source, log);
  const found = new Map(
    GRANT_KEYS.map((entry) => [entry.key, importGrant(entry, { source, profile, forbidden, context, log })]),
  );
  const of = (key: string): string[] => [...(found.get(key) ?? [])];
  const [read, write] = [of('memory_read'), of('memory_write')];
  const environment = importEnvironment(source, forbidden.get('shell'), context, log);
  const memory = { ...(read.length === 0 ? {} : { read }), ...(write.length === 0 ? {} : { write }) };
  return {
    ...(of('network').length === 0 ? {} : { network: of('network') }),
    ...(Object.keys(memory).length === 0 ? {} : { memory }),
    ...(of('agent_message').length === 0 ? {} : { messages: of('agent_message') }),
    ...(of('agent_kill').length === 0 ? {} : { kill: of('agent_kill') }),
    ...(of('shell').length === 0 ? {} : { shell: of('shell') }),
    ...(environment.length === 0 ? {} : { environment: [...environment] }),
  };
}

/** Where a manifest names environment variables. */
const ENVIRONMENT_KEYS: readonly FieldPath[] = [
  ['capabilities', 'env_read'],
  ['exec_policy', 'allowed_env_vars'],
  ['exec_policy', 'shell_env_passthrough'],
];

/** Only programs have an environment here. `reason`: why the agent starts none. */
function importEnvironment(
  source: JsonObject,
  reason: string | undefined,
  { patterns }: ImportContext,
  log: ImportLog,
): readonly string[] {
  const list = new GrantList('spec.grants.environment', 'name', patterns, log);
  const note = 'programs of shell_exec get it, unless its name is that of a secret';
  for (const path of ENVIRONMENT_KEYS) {
    if (isEmptyList(source, path)) log.imported(path, [], list.field, 'nothing is granted');
    for (const { path: at, text } of textsAt(source, path, log)) {
      if (reason === undefined) list.add(at, text, text, note);
      else log.add(at, 'NotImported', { value: text, note: reason });
    }
  }
  return list.patterns;
}

interface GrantSource {
  readonly source: JsonObject;
  readonly profile: string | undefined;
  readonly forbidden: ReadonlyMap<string, string>;
  readonly context: ImportContext;
  readonly log: ImportLog;
}

function importGrant(entry: GrantKey, { source, profile, forbidden, context, log }: GrantSource): readonly string[] {
  const path: FieldPath = ['capabilities', entry.key];
  const listed = textsAt(source, path, log);
  const list = new GrantList(entry.field, entry.kind, context.patterns, log);
  if (isEmptyList(source, path)) log.imported(path, [], entry.field, 'nothing is granted');
  const items = listed.length > 0 ? listed : impliedItems(entry, profile);
  const reason = forbidden.get(entry.key);
  for (const { path: at, text } of items) {
    if (reason !== undefined) {
      log.add(at, 'NotImported', { value: text, note: reason });
      continue;
    }
    const { pattern, note } = entry.convert?.(text) ?? { pattern: text };
    list.add(at, text, pattern, note);
  }
  return list.patterns;
}

function impliedItems({ implied }: GrantKey, profile: string | undefined): TextItem[] {
  if (profile === undefined) return [];
  return implied(PROFILES[profile] ?? []).map((text) => ({ path: ['profile'], text }));
}

function hostPattern(text: string): { pattern: string; note?: string } {
  if (text.trim() === '*')
    return { pattern: '*', note: 'any host at port 443; a policy level with an allow list needs names' };
  if (text.startsWith('*.'))
    return { pattern: text, note: 'a star is one label here: a.b.example.com needs **.example.com' };
  return { pattern: text };
}

function commandPattern(text: string): { pattern: string; note?: string } {
  const namesProgram = /^[^\s*?]+(?:\s|$)/.test(text);
  return namesProgram
    ? { pattern: text }
    : { pattern: text, note: 'below level elevated a pattern has to name its program, so name each program' };
}

const MODES: readonly string[] = [
  'deny',
  'none',
  'disabled',
  'allowlist',
  'restricted',
  'full',
  'allow',
  'all',
  'unrestricted',
];

/** The grants that the execution policy forbids, with the reason. */
function forbiddenKeys(source: JsonObject, log: ImportLog): ReadonlyMap<string, string> {
  const forbidden = new Map<string, string>();
  for (const [key, grant] of [
    ['allow_shell', 'shell'],
    ['allow_network', 'network'],
  ] as const) {
    const path = ['exec_policy', key];
    const isAllowed = booleanAt(source, path, log);
    if (isAllowed === undefined) continue;
    if (!isAllowed) forbidden.set(grant, `exec_policy.${key} is false`);
    const note = isAllowed ? `as far as capabilities.${grant} grants it` : 'stays empty';
    log.imported(path, isAllowed, `spec.grants.${grant}`, note);
  }
  importExecutionMode(source, forbidden, log);
  return forbidden;
}

/** The mode stands in the table or in place of it. */
function importExecutionMode(source: JsonObject, forbidden: Map<string, string>, log: ImportLog): void {
  const path: FieldPath = typeof source['exec_policy'] === 'string' ? ['exec_policy'] : ['exec_policy', 'mode'];
  const mode = textAt(source, path, log);
  if (mode === undefined) return;
  const index = MODES.indexOf(mode.toLowerCase());
  if (index === -1) return log.invalid(path, mode, 'deny, allowlist or full');
  if (index <= 2) {
    forbidden.set('shell', 'the execution policy denies programs');
    return log.imported(path, mode, 'spec.grants.shell', 'stays empty');
  }
  const note = 'spec.grants.shell has the programs of capabilities.shell';
  if (index <= 4) log.imported(path, mode, 'spec.grants.shell', note);
  else log.add(path, 'Refused', { value: mode, note: `no agent may start every program; ${note}` });
}
