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
  {
    arbitrary: some(
      '*',
      'file_*',
      '*_set',
      'agent_*',
      'git_*',
      'web_*',
      'shell_exec',
      'double',
      '*_step',
      'refund',
      'sql_query',
    ),
    weight: 1,
  },
);
const denied = some('file_delete', 'web_*', 'memory_set', 'git_*', 'call_*', 'pinned_step', 'h_*', 'sql_query');
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
    forge: fc.record({ enabled: fc.boolean(), modes: some('Compose', 'Sandbox') }, keep),
  },
  { noNullPrototype: true, requiredKeys: ['grants', 'forge'] },
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

const revision = fc.constantFrom('main', 'HEAD~2', '--output=x', 'a..b', 'a b', '');

/** What is read of repositories, memory, events and schedules. */
function readingCalls(path: fc.Arbitrary<string>): fc.Arbitrary<AskedCall>[] {
  const id = fc.constantFrom('later', 'X y', '');
  return [
    call('git_status', { repository: path }, []),
    call('git_diff', { path, from: revision, to: revision, staged: fc.boolean() }, []),
    call('git_show', { revision, path }, []),
    call('git_branch', { name: revision, from: revision, switch: fc.boolean() }, []),
    call('git_pull_request', { url, branch: revision, base: revision, title: text }, ['url', 'branch', 'title']),
    call('memory_list', { prefix: key, limit: fc.constantFrom(1, 0) }, []),
    call('memory_search', { query: text, limit: fc.constantFrom(1, 0) }, []),
    call('agent_list', { all: fc.boolean() }, []),
    call('event_subscriptions', {}),
    call('event_unsubscribe', { id }),
    call('schedule_list', {}),
    call('schedule_delete', { name: id }),
    call('task_get', { ticket: id, wait: fc.constant(0) }, []),
  ];
}

/** What works for the model: its code, its runs, its tools. */
function callsOfModels(): fc.Arbitrary<AskedCall>[] {
  const kind = fc.constantFrom('all', 'tool', 'emergent-tool', 'Tool', 'nosuch', '');
  const code = fc.constantFrom('return 1', '', 'rm -rf / # AKIAIOSFODNN7EXAMPLE');
  const implementation = fc.constantFrom<Json>(
    { mode: 'sandbox', code: 'function execute(input) { return { a: 1 }; }' },
    {
      mode: 'sandbox',
      code: 'function execute(input) { return fetch("https://x.test"); }',
      allowlist: ['fetch'],
      domains: ['x.test'],
    },
    { mode: 'compose', steps: [{ name: 'a', tool: 'file_read', inputMapping: { path: '$input.path' } }] },
    'rm -rf /',
  );
  return [
    call('discover_capabilities', { query: text, kind, category: fc.constantFrom('web', '') }, ['query']),
    call('discover_capabilities', { kind }),
    call('code_run', { code, input: text }, []),
    call('generate_text', { prompt: text }, []),
    call('drop_tool', { name: fc.constantFrom('double', '') }),
    call('forge_tool', { name: fc.constantFrom('made', '', 'file_read'), description: text, implementation }, []),
  ];
}

/** What others execute: services, Capabilities, MCP servers. */
function callsElsewhere(path: fc.Arbitrary<string>): fc.Arbitrary<AskedCall>[] {
  const order = fc.oneof(text, path);
  const query = fc.constantFrom('select 1', 'drop table orders', 'select \0', '');
  return [
    call('web_search', { query: text, count: fc.constantFrom(1, 0) }, []),
    call('sql_query', { connection: fc.constantFrom('sales', 'other'), query, parameters: fc.constant([1]) }, [
      'connection',
    ]),
    call('refund', { order }, []),
    call('crm_read', { order }, []),
    call('h_echo', { text, url }, []),
    call('ship', { text, path }, []),
  ];
}

/** Forged tools, with schemas of their own. */
function forgedCalls(path: fc.Arbitrary<string>): fc.Arbitrary<AskedCall>[] {
  const value = fc.constantFrom<Json>(1, 5, 'x');
  const names = [
    'double',
    'call_api',
    'read_file',
    'read_step',
    'second_step',
    'pinned_step',
    'nested_step',
    'lost_step',
  ];
  return names.map((name) => call(name, { value, path, note: text }, []));
}

function pathsIn(workspace: string): fc.Arbitrary<string> {
  return fc.constantFrom(
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
}

/** Calls of all tools, some of them malformed. */
export function askedCalls(workspace: string, count: number): fc.Arbitrary<AskedCall[]> {
  const path = pathsIn(workspace);
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
    ...readingCalls(path),
    ...callsOfModels(),
    ...callsElsewhere(path),
    ...forgedCalls(path),
  ];
  return fc.array(fc.oneof(...calls), { minLength: count, maxLength: count });
}
