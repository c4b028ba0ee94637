import * as fc from 'fast-check';
import { ACTION_CATEGORIES, ACTION_TYPES, BUILTIN_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { AGENT_MODES, TOOL_PROFILE_NAMES } from '../../api/v1alpha1/agent/tool-profiles.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { Json } from '../../lib/json.ts';

/** An agent, its policy and the state of its sessions. */
export interface Asker {
  agent: AgentSpec;
  policy: TrustPolicySpec;
  level: string;
  /** `private`: with untrusted content and private data. */
  session: 'clean' | 'tainted' | 'private';
}

export interface AskedCall {
  tool: string;
  input: Json;
}

const keep: { noNullPrototype: true; requiredKeys: [] } = { noNullPrototype: true, requiredKeys: [] };

function some<T>(...items: T[]): fc.Arbitrary<T[]> {
  return fc.subarray(items, { maxLength: Math.min(items.length, 3) });
}

const tools = fc.oneof(
  { arbitrary: fc.constant(['*']), weight: 4 },
  { arbitrary: some('*', 'file_*', '*_set', 'agent_*', 'git_*', 'web_fetch', 'shell_exec'), weight: 1 },
);
const denied = some('file_delete', 'web_*', 'memory_set', 'git_*');
const hosts = some('*', '*.example.com', 'api.example.com', '**:*');
const actions = some(...ACTION_TYPES, ...ACTION_CATEGORIES);
const keys = some('*', 'self.*', 'shared.*');
const agents = some('*', 'rev*', 'a-*');
/** Custom actions that built-in tools perform beside their own. */
const CUSTOM = [
  { name: 'example.com/hr:read', base: 'code:read', risk: 'critical', tools: ['file_read', 'memory_*'] },
  { name: 'example.com/crm:write', tools: ['*_set'] },
];
const PRESETS = ['Full', 'Semi', 'Supervised', 'Locked'] as const;

const constraints = fc.record(
  {
    files: fc.constantFrom('Workspace', 'Full'),
    network: fc.constantFrom('None', 'Allowlist', 'Open'),
    git: fc.constantFrom('LocalOnly', 'Full'),
    terminal: fc.constantFrom('RestrictedCommands', 'Full'),
  },
  keep,
);

const agentSpec = fc.record(
  {
    mode: fc.constantFrom(...AGENT_MODES, ...Array.from({ length: 9 }, () => 'Full' as const)),
    toolProfile: fc.constantFrom(...TOOL_PROFILE_NAMES, ...Array.from({ length: 9 }, () => 'Full' as const)),
    grants: fc.record(
      {
        tools,
        network: hosts,
        memory: fc.record({ read: keys, write: keys }, keep),
        messages: agents,
        spawn: agents,
        kill: agents,
        shell: some('*', 'ls *', 'rm *', 'git log*'),
        events: fc.record({ publish: some('>', 'orders.*'), subscribe: some('>', 'orders.>') }, keep),
        schedules: fc.nat(2),
      },
      { noNullPrototype: true, requiredKeys: ['tools'] },
    ),
    denyTools: denied,
    autonomy: fc.constantFrom(...PRESETS),
    constraints,
    arguments: fc.array(
      fc.record({
        tool: fc.constantFrom('file_*', 'memory_get'),
        argument: fc.constantFrom('path', 'key'),
        allow: some('data/*', '**', 'self.notes'),
      }),
      { maxLength: 1 },
    ),
    toolSettings: fc.constantFrom([], [], [{ name: 'file_read', defaults: '{"path":"data/a.csv"}' }]),
    quotas: fc.constantFrom({}, {}, {}, {}, { toolCallsPerMinute: 1_000 }, { toolCallsPerMinute: 0 }),
    children: fc.record({ inherit: fc.boolean() }),
    forge: fc.record({ enabled: fc.boolean() }),
  },
  { noNullPrototype: true, requiredKeys: ['grants'] },
);

const policySpec = fc.record(
  {
    level: fc.record({ ceiling: fc.constantFrom(...BUILTIN_LEVELS, 'elevated') }),
    autonomy: fc.constantFrom(...PRESETS, 'Full'),
    actions: fc.constantFrom([], [], CUSTOM),
    rules: fc.record({ deny: actions, requireApproval: actions, allow: actions }, keep),
    tools: fc.record({ allow: tools, deny: denied }, keep),
    constraints,
    egress: fc.record({ allow: hosts }),
    schedules: fc.record({ runsPerHour: fc.nat(10) }),
    children: fc.record({ generations: fc.integer({ min: 1, max: 3 }), templates: agents }, keep),
    tainted: fc.record(
      { network: hosts, deny: some('forge', 'message', 'network', 'spawn', 'memory', 'schedule') },
      keep,
    ),
  },
  keep,
);

/** As a manifest has them. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

export const anAsker: fc.Arbitrary<Asker> = fc
  .record({
    agent: agentSpec.map((spec) => ({
      trustPolicyRef: { name: 'p' },
      model: { primary: 'test/author' },
      prompt: { system: 'You test.' },
      ...spec,
    })),
    policy: policySpec,
    level: fc.constantFrom(...BUILTIN_LEVELS, 'elevated', 'elevated'),
    session: fc.constantFrom('clean', 'clean', 'tainted', 'private'),
  })
  .map((asker) => plain(asker) as Asker);

const key = fc.constantFrom('self.notes', 'shared.plan', 'a..b', '');
const text = fc.constantFrom(
  'hello',
  'AKIAIOSFODNN7EXAMPLE',
  'card 4111 1111 1111 1111',
  '-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----',
);
const agent = fc.constantFrom('reviewer', 'other', 'a-child', 'a');

const url = fc.constantFrom(
  'https://api.example.com/',
  'http://api.example.com/',
  'https://api.example.com:8443/x',
  'https://localhost/',
  'https://10.0.0.1/',
  'https://u:p@api.example.com/',
  'file:///etc/passwd',
  'https://evil.test/',
  'no url',
);
function call(
  tool: string,
  members: Record<string, fc.Arbitrary<Json>>,
  required = Object.keys(members),
): fc.Arbitrary<AskedCall> {
  return fc
    .record(members, { noNullPrototype: true, requiredKeys: required })
    .map((input): AskedCall => ({ tool, input: plain(input) as Json }));
}

/** Calls of the built-in tools, some of them malformed. */
export function askedCalls(workspace: string, count: number): fc.Arbitrary<AskedCall[]> {
  const path = fc.constantFrom(
    'data/a.csv',
    './data//a.csv',
    'new.txt',
    '/etc/passwd',
    '../x',
    '.',
    '.git/config',
    '.temper',
    '.temper/audit',
    'data/../.temper/x',
    'held/state/x',
    'a/.GIT/x',
    'data/%2e%2e/x',
    `${workspace}/data/a.csv`,
    `${workspace}-other/a`,
  );
  const calls = [
    call('file_read', { path, firstLine: fc.constantFrom<Json>(1, 0, 'x') }, []),
    call('file_write', { path, text }),
    call('file_edit', { path, edits: fc.constantFrom<Json>([{ oldText: 'a', newText: 'b' }], [{}], []) }),
    call('file_delete', { path, recursive: fc.boolean() }, ['path']),
    call('file_delete', { path: fc.constantFrom('held', 'data'), recursive: fc.constant(true) }),
    call('file_list', { path, glob: fc.constantFrom('*.csv', '**x') }, []),
    call('text_search', { path, text, glob: fc.constantFrom('**', '../*') }, ['text']),
    call('memory_get', { key }),
    call('memory_set', { key, value: text }),
    call('memory_delete', { key }),
    call('agent_send', { to: agent, text, session: fc.constantFrom('s', '../s') }, ['to', 'text']),
    call('agent_message', { to: agent, text, wait: fc.constant(0) }),
    call('agent_spawn', { name: fc.constantFrom('child', 'X'), template: agent, prompt: text }, ['name']),
    call('agent_kill', { agent }),
    call('spawn_specialist', { role: fc.constant('r'), instructions: text, task: text, reason: text }),
    call('schedule_create', {
      name: fc.constant('later'),
      times: fc.constantFrom('every 10m', 'every 24h', '0 9 * * *', 'sometimes'),
      message: text,
    }),
    call('event_publish', { subject: fc.constantFrom('orders.new', 'temper.x', 'a b'), data: text }, ['subject']),
    call('event_subscribe', { subject: fc.constantFrom('orders.*', '>', 'other', '*x') }),
    call('web_fetch', { url }),
    call('shell_exec', {
      command: fc.constantFrom('ls', 'rm', 'git'),
      args: fc.constantFrom<Json>([], ['-l'], ['-rf', '/'], ['log'], ['a\0b']),
    }),
    call('git_log', { revision: fc.constantFrom('main', '--upload-pack=x', 'a..b', 'git@example.com:a') }, []),
    call('git_clone', { url, folder: path, revision: fc.constantFrom('main', 'a..b', '--x') }, ['url', 'folder']),
    call('git_fetch', { url, branch: fc.constantFrom('main', 'a..b', '--x') }),
    call('git_push', {
      url,
      branch: fc.constantFrom('agents/a', '+main'),
      commit: fc.constantFrom('a'.repeat(40), 'x'),
    }),
    call('git_commit', { message: text, all: fc.boolean() }),
    call('time_now', {}),
    call('list_tools', {}).map(({ input }): AskedCall => ({ tool: 'discover_capabilities', input })),
  ];
  return fc.array(fc.oneof(...calls), { minLength: count, maxLength: count });
}
