import * as fc from 'fast-check';
import { ACTION_CATEGORIES, ACTION_TYPES, BUILTIN_LEVELS, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { AGENT_MODES, TOOL_PROFILE_NAMES } from '../../api/v1alpha1/agent/tool-profiles.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { anAgentSpec } from '../policy.testing.ts';
import type { PolicyRequest, PolicySnapshot } from '../types.ts';

/** Agents, policies and requests that both languages can express. */

const PRESETS = ['Full', 'Semi', 'Supervised', 'Locked'] as const;
const keep: { noNullPrototype: true; requiredKeys: [] } = { noNullPrototype: true, requiredKeys: [] };

function some<T>(...items: T[]): fc.Arbitrary<T[]> {
  return fc.subarray(items, { maxLength: Math.min(items.length, 4) });
}

/** Absent in most cases, so that one rule does not deny everything. */
function seldom<T>(item: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ arbitrary: fc.constant(undefined), weight: 3 }, { arbitrary: item, weight: 1 });
}

const listed = some('*', 'file_*', '*_read', 'WEB_fetch', 'sh*', 'file_read', ' git_* ', '*e*', 'csv_rows', 'agent_*');
const tools = fc.oneof({ arbitrary: fc.constant(['*']), weight: 2 }, { arbitrary: listed, weight: 1 });
const deniedTools = some('file_w*', '*_push', 'sh*', 'other', 'csv_rows', 'forge_tool', 'list_*', '*_spawn');
const hosts = some(
  '*',
  '**:*',
  '*.example.com',
  '**.example.com',
  'api.example.com',
  'example.org:80',
  '10.0.0.1:*',
  '*.a.example.com:*',
);
/** Custom actions with each kind of base, one of them for tools of other names. */
const CUSTOM: TrustPolicySpec['actions'] = [
  { name: 'example.com/crm:refund' },
  { name: 'example.com/crm:note', base: 'memory:read', risk: 'low', tools: ['file_*'] },
  { name: 'example.com/ops:restart', base: 'deploy:staging', risk: 'critical', tools: ['csv_rows', 'sh*'] },
  { name: 'example.org/git:mirror', base: 'vcs:push', risk: 'high', tools: [] },
];
const CUSTOM_NAMES = CUSTOM.map(({ name }) => name);

/** Few, so that rules and requests meet. */
const ACTIONS = ['code:read', 'code:write', 'code:delete', 'vcs:push', 'comms:external', 'comms:internal', 'db:query'];
const actions = fc.oneof(some(...ACTIONS, 'code', 'vcs', 'deploy'), some(...ACTION_TYPES, ...ACTION_CATEGORIES));
const agents = some('*', 'review*', 'writer', '*er', 'a-*-z');
const keys = some('*', 'self.*', 'shared.*', 'self.notes', '*.notes.*', 'self.*.today', 'shared');
const events = some('>', 'orders.>', 'orders.*', 'orders.*.paid', '*.new', 'temper.>', 'build');
const models = some('openai/*', 'openai/gpt', '**', 'local/**', '*/gpt', 'default/default');
const shell = some('*', 'ls *', 'ls -l', 'cat *.txt', 'grep * *');
const apis = some<'fetch' | 'crypto' | 'clock'>('fetch', 'crypto', 'clock');
const times = fc.nat(3);

const dimensions = {
  files: fc.constantFrom('Workspace', 'Project', 'Full'),
  network: fc.constantFrom('None', 'Allowlist', 'Open'),
  git: fc.constantFrom('LocalOnly', 'ReadAndBranch', 'Full'),
  terminal: fc.constantFrom('None', 'RestrictedCommands', 'Full'),
  requireApproval: actions,
};
const constraints = fc.record(dimensions, keep);

const agentSpec: fc.Arbitrary<AgentSpec> = fc
  .record(
    {
      suspend: fc.constant(false),
      mode: seldom(fc.constantFrom(...AGENT_MODES)),
      toolProfile: seldom(fc.constantFrom(...TOOL_PROFILE_NAMES)),
      grants: fc.record(
        {
          tools,
          network: hosts,
          memory: fc.record({ read: keys, write: keys }, keep),
          messages: agents,
          spawn: agents,
          kill: agents,
          shell,
          events: fc.record({ publish: events, subscribe: events }, keep),
          schedules: times,
        },
        keep,
      ),
      denyTools: seldom(deniedTools),
      autonomy: fc.constantFrom(...PRESETS),
      constraints,
      arguments: fc.array(
        fc.record({
          tool: fc.constantFrom('*', 'file_*', 'csv_rows', '*_fetch'),
          argument: fc.constantFrom('path', 'id'),
          allow: some('data/*', 'data/**', '**', 'data/a.csv', '*', '*.csv', '/abs/*', 'data/*/c'),
        }),
        { maxLength: 2 },
      ),
      forge: fc.record({ enabled: fc.boolean(), modes: some<'Compose' | 'Sandbox'>('Compose', 'Sandbox'), apis }, keep),
      children: fc.record({ inherit: fc.boolean() }),
    },
    keep,
  )
  .chain((change) =>
    fc
      .tuple(some('openai/gpt', 'local/a/b', 'default/default'), fc.constant(change))
      .map(([fallbacks, rest]) =>
        anAgentSpec({ ...present(rest), model: { primary: 'openai/o4', fallbacks } } as Partial<AgentSpec>),
      ),
  );

/** Without members that are undefined, as a manifest has them. */
function present<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

const customLevel = fc.record({
  name: fc.constant('own'),
  base: fc.constantFrom(...BUILTIN_LEVELS),
  categories: some(...TOOL_CATEGORIES),
  // All of them are required.
  constraints: fc.record({ ...dimensions, code: fc.constant('Isolated') }),
});

const LEVELS = [...BUILTIN_LEVELS, 'elevated', 'elevated', 'elevated', 'elevated', 'own'];

const policySpec = fc
  .record(
    {
      suspend: seldom(fc.boolean()),
      level: fc.record({ ceiling: fc.constantFrom(...LEVELS) }),
      autonomy: fc.constantFrom(...PRESETS),
      rules: fc.record({ deny: seldom(actions), requireApproval: actions, allow: actions }, keep),
      tools: fc.record({ allow: tools, deny: seldom(deniedTools) }, keep),
      constraints: seldom(constraints),
      egress: fc.record({ allow: hosts }),
      models: fc.record({ allow: models }),
      forge: fc.record({ apis }),
      promotion: fc.record({ toAgent: fc.record({ requireHuman: fc.boolean() }) }),
      schedules: fc.record({ perAgent: times, runsPerHour: times }, keep),
      children: fc.record({ generations: fc.integer({ min: 1, max: 3 }), templates: agents }, keep),
      actions: fc.constantFrom(undefined, undefined, CUSTOM),
      privateData: fc.record({ sources: some('File', 'Memory') }),
      tainted: fc.record(
        {
          deny: some('forge', 'promote', 'message', 'network', 'spawn', 'memory', 'schedule'),
          network: hosts,
          tools: seldom(tools),
        },
        keep,
      ),
    },
    keep,
  )
  .chain((change) =>
    fc
      .tuple(customLevel, some(...CUSTOM_NAMES, 'example.com/crm'), fc.constantFrom('deny', 'requireApproval', 'allow'))
      .map(([level, named, list]) => {
        const { rules = {} } = change;
        const own =
          change.actions === undefined
            ? {}
            : { rules: { ...rules, [list]: [...(rules[list as 'deny'] ?? []), ...named] } };
        return present({ ...change, ...own, levels: [level] }) as unknown as TrustPolicySpec;
      }),
  );

export const snapshots: fc.Arbitrary<PolicySnapshot> = fc.record({
  agent: agentSpec.map((spec) => ({ name: 'a', namespace: 'n', spec })),
  policy: policySpec.map((spec) => ({ name: 'p', spec })),
  level: fc.constantFrom(...LEVELS),
  categoryLevels: fc.record({ web: fc.constantFrom(...LEVELS), memory: fc.constantFrom(...LEVELS) }, keep),
  generation: fc.nat(2),
  tainted: fc.boolean(),
  hasPrivateData: fc.boolean(),
  workspace: fc.constant('/w/a'),
  project: fc.constant('/w'),
});

const input = fc.record(
  {
    path: fc.constantFrom('data/a.csv', 'data/x/c', 'notes', '/abs/a', 'data'),
    id: fc.constantFrom('data/a.csv', 'x'),
    command: fc.constantFrom('ls -l', 'cat a.txt', 'ls | wc', 'grep x y', 'ls *', "cat 'a'.txt", 'who'),
    remote: fc.constantFrom(
      'https://example.com/a.git',
      'git@example.com:a',
      'example.com:a.git',
      'ext::a',
      '//example.com/a',
      'origin',
      '@a:b',
      'HEAD:a.b',
    ),
    recursive: fc.boolean(),
  },
  keep,
);

const tool = fc
  .record({
    kind: fc.constant('Tool' as const),
    name: fc.constantFrom(
      'file_read',
      'file_write',
      'web_fetch',
      'shell',
      'forge_tool',
      'csv_rows',
      'list_tools',
      'agent_spawn',
      'File_Read',
      ' csv_rows',
      'memory_get',
      'code_run',
      'git_push',
    ),
    category: fc.constantFrom(...TOOL_CATEGORIES),
    action: fc.oneof(
      fc.constantFrom(...ACTIONS, 'code:other', 'unknown:action', 'example.com/crm:other', ...CUSTOM_NAMES),
      fc.constantFrom(...ACTION_TYPES),
    ),
    forged: fc.boolean(),
    arguments: fc.option(input, { nil: undefined, freq: 2 }),
  })
  .map(present);

const access = fc.constantFrom('read' as const, 'write' as const);
const agent = fc.constantFrom('reviewer', 'writer', 'other', 'a-b-z');

function ask(kind: PolicyRequest['kind'], members: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<PolicyRequest> {
  return fc.record({ kind: fc.constant(kind), ...members }) as unknown as fc.Arbitrary<PolicyRequest>;
}

const others: fc.Arbitrary<PolicyRequest> = fc.oneof(
  {
    arbitrary: ask('Network', {
      host: fc.constantFrom(
        'api.example.com',
        'API.example.com',
        'example.com',
        'x.a.example.com',
        'example.org',
        'badexample.com',
        '10.0.0.1',
      ),
      port: fc.constantFrom(80, 443),
    }),
    weight: 3,
  },
  ask('File', { path: fc.constantFrom('a', '/w/a/./b//c', '/w/x', '/w', '/etc', '/w/ab', '/', 'b/'), access }),
  ask('Memory', {
    key: fc.constantFrom('self.notes', 'self.notes.today', 'self', 'shared', 'shared.a.b', 'self.x.today', 'x.notes.y'),
    access,
  }),
  ask('Message', { agent, child: fc.boolean() }),
  fc.oneof(ask('Spawn', { template: agent }), ask('Spawn', {})),
  ask('Kill', { agent, child: fc.boolean() }),
  ask('Schedule', { others: fc.nat(4), runsPerHour: fc.nat(4), depth: fc.constantFrom(0, 0, 1) }),
  ask('Publish', { subject: fc.constantFrom('orders', 'orders.new', 'orders.1.paid', 'temper.x', 'temper', 'build') }),
  ask('Model', { model: fc.constantFrom('openai/gpt', 'openai/o4', 'local/a/b', 'default/default', 'x') }),
  ask('Forge', {
    mode: fc.constantFrom('Compose', 'Sandbox'),
    apis,
    domains: fc.constant([]),
    paths: fc.constant([]),
  }),
  ask('Promote', { tool: fc.constant('t'), tier: fc.constantFrom('Agent', 'Shared') }),
);

export const requests: fc.Arbitrary<PolicyRequest> = fc.oneof(
  { arbitrary: tool as fc.Arbitrary<PolicyRequest>, weight: 2 },
  { arbitrary: others, weight: 1 },
);
