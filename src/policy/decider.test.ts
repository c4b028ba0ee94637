import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { commandLine } from './patterns/command-lines.ts';
import { createDecider } from './decider.ts';
import { aSnapshot, aTool } from './policy.testing.ts';
import type { SnapshotChange } from './policy.testing.ts';
import type { Decision, PolicyRequest } from './types.ts';

function decide(request: PolicyRequest, change: SnapshotChange = {}): Decision {
  return createDecider(aSnapshot(change)).decide(request);
}

function outcome(request: PolicyRequest, change: SnapshotChange = {}): string {
  const { effect, rule } = decide(request, change);
  return `${effect} ${rule}`;
}

const web = aTool({ name: 'web_fetch', category: 'web', action: 'comms:external' });
const terminal = aTool({ name: 'shell', category: 'terminal', action: 'code:write' });

describe('decisions about tools', () => {
  it('a granted tool whose category is allowed and whose action needs no approver is allowed', () => {
    assert.deepEqual(decide(aTool()), {
      effect: 'Allow',
      rule: 'grant.tools',
      reason: 'Tool "file_read" is allowed by grant.tools; no other rule denies it.',
      risk: 'low',
    });
  });

  it('an empty or absent list grants nothing', () => {
    assert.equal(outcome(aTool(), { agent: { grants: { tools: [] } } }), 'Deny grant.tools');
    assert.equal(outcome(aTool(), { agent: { grants: {} } }), 'Deny grant.tools');
  });

  it('a denial states what would be allowed', () => {
    const { reason } = decide(aTool(), { agent: { grants: { tools: ['csv_*', 'file_list'] } } });
    assert.equal(
      reason,
      'Tool "file_read" is not granted to agent "analyst": grants.tools allows "csv_*", "file_list".',
    );
  });

  it('the three forbidden actions are denied under every policy', () => {
    for (const action of ['deploy:production', 'db:admin', 'org:fire']) {
      const policy = {
        autonomy: 'Full' as const,
        level: { ceiling: 'elevated' },
        rules: { allow: [action] },
        tools: { allow: ['*'] },
      };
      const request = aTool({ name: 'do', category: 'deployment', action });
      assert.equal(outcome(request, { policy, level: 'elevated' }), 'Deny deny.action');
    }
  });

  it('the suspend fields are checked before all other rules', () => {
    assert.equal(outcome(aTool(), { policy: { suspend: true } }), 'Deny suspend.policy');
    assert.equal(outcome(aTool(), { agent: { suspend: true } }), 'Deny suspend.agent');
  });

  it('tool discovery needs no grant, level or approver, but can be denied by name or action', () => {
    const look = aTool({ name: 'discover_capabilities', category: 'other', action: 'code:read' });
    const bare = { agent: { grants: { tools: [] } }, policy: { autonomy: 'Locked' as const } };
    assert.equal(outcome(look, bare), 'Allow grant.tools');
    assert.equal(
      outcome({ ...look, forged: true }, bare),
      'Deny grant.tools',
      'a forged tool of the same name is not the discovery tool',
    );
    assert.equal(outcome(look, { agent: { denyTools: ['discover_*'] } }), 'Deny deny.name');
    assert.equal(outcome(look, { policy: { tools: { deny: ['discover_*'] } } }), 'Deny deny.tools');
    assert.equal(outcome(look, { policy: { rules: { deny: ['code:read'] } } }), 'Deny rules.deny');
    assert.equal(outcome(look, { agent: { suspend: true } }), 'Deny suspend.agent');
  });

  it('rules.deny accepts actions and whole categories', () => {
    assert.equal(outcome(aTool(), { policy: { rules: { deny: ['code'] } } }), 'Deny rules.deny');
    assert.equal(outcome(aTool(), { policy: { rules: { deny: ['code:write'] } } }), 'Allow grant.tools');
  });

  it('a grant for memory or messages opens their tools at every built-in level, each for what it grants', () => {
    const get = aTool({ name: 'memory_get', category: 'memory', action: 'memory:read' });
    const set = aTool({ name: 'memory_set', category: 'memory', action: 'code:write' });
    const send = aTool({ name: 'agent_send', category: 'communication', action: 'comms:internal' });
    const mail = aTool({ name: 'mail', category: 'communication', action: 'comms:external' });
    const effects = (agent: Partial<AgentSpec>, level: string, policy?: TrustPolicySpec): string[] =>
      [get, set, send, mail].map((tool) =>
        outcome(tool, { agent: { autonomy: 'Full', ...agent }, level, ...(policy === undefined ? {} : { policy }) }),
      );
    const closed = 'Deny level.category';
    const open = 'Allow grant.tools';
    const tools = ['*'];
    for (const level of ['sandboxed', 'restricted', 'standard']) {
      assert.deepEqual(effects({ grants: { tools } }, level), [closed, closed, closed, closed]);
      assert.deepEqual(effects({ grants: { tools, memory: { read: ['a.*'] } } }, level), [
        open,
        closed,
        closed,
        closed,
      ]);
      assert.deepEqual(effects({ grants: { tools, memory: { write: ['a.*'] } } }, level), [
        closed,
        open,
        closed,
        closed,
      ]);
      assert.deepEqual(effects({ grants: { tools, messages: ['b'] } }, level), [closed, closed, open, closed]);
      const none = { tools, messages: [], memory: { read: [], write: [] } };
      assert.deepEqual(effects({ grants: none }, level), [closed, closed, closed, closed]);
    }
    const granted = { tools, messages: ['b'], memory: { read: ['*'], write: ['*'] } };
    const custom = (categories: string[]): TrustPolicySpec => ({
      levels: [{ name: 'own', base: 'standard', categories: categories as never, constraints: {} as never }],
    });
    assert.deepEqual(effects({ grants: granted }, 'own', custom(['file_system'])), [closed, closed, closed, closed]);
    assert.deepEqual(effects({ grants: granted }, 'own', custom(['memory'])), [open, open, closed, closed]);
    assert.equal(
      outcome(get, { agent: { grants: granted }, policy: { tools: { deny: ['memory_*'] } } }),
      'Deny deny.tools',
    );
    assert.equal(outcome(get, { agent: { grants: { memory: { read: ['*'] } } } }), 'Deny grant.tools');
  });

  it('a denied name overrides an allowed name, and an allowed name overrides the category', () => {
    const design = aTool({ name: 'draw', category: 'design', action: 'docs:write' });
    assert.equal(outcome(design), 'Deny level.category');
    assert.equal(outcome(design, { policy: { tools: { allow: ['draw'] } } }), 'Allow grant.tools');
    assert.equal(
      outcome(design, {
        policy: { tools: { allow: ['draw'] } },
        agent: { grants: { tools: ['*'] }, denyTools: ['DRAW'] },
      }),
      'Deny deny.name',
    );
    assert.equal(outcome(design, { policy: { tools: { allow: ['draw'], deny: ['dr*'] } } }), 'Deny deny.tools');
  });

  it('the effective level is the lower of the earned level and the ceiling, whose default is standard', () => {
    const deploy = aTool({ name: 'd', category: 'mcp', action: 'code:read' });
    assert.equal(outcome(deploy, { level: 'elevated' }), 'Deny level.category');
    assert.equal(
      outcome(deploy, { level: 'elevated', policy: { level: { ceiling: 'elevated' } } }),
      'Allow grant.tools',
    );
    assert.equal(createDecider(aSnapshot({ level: 'elevated' })).level, 'standard');
    assert.equal(outcome(web, { level: 'sandboxed', policy: { autonomy: 'Full' } }), 'Deny level.category');
  });

  it('a custom level stays within its base, and omitted dimensions are the tightest', () => {
    const levels: NonNullable<TrustPolicySpec['levels']> = [
      {
        name: 'clerk',
        base: 'restricted' as const,
        categories: ['web', 'terminal', 'database'],
        constraints: { network: 'Open', terminal: 'Full' } as never,
      },
    ];
    const change = { level: 'clerk', policy: { levels, autonomy: 'Full' as const } };
    assert.equal(outcome(web, change), 'Allow grant.tools');
    assert.equal(outcome(terminal, change), 'Deny level.category');
    assert.equal(outcome(aTool(), change), 'Deny level.category');
    assert.equal(createDecider(aSnapshot(change)).level, 'clerk');
    const capped = { level: 'standard', policy: { levels, level: { ceiling: 'clerk' }, autonomy: 'Full' as const } };
    assert.equal(createDecider(aSnapshot(capped)).level, 'clerk');
    assert.equal(outcome(terminal, capped), 'Deny level.category');
  });

  it('an invalid level, pattern or action denies everything', () => {
    assert.equal(outcome(aTool(), { level: 'senior' }), 'Deny policy.invalid');
    assert.equal(outcome(aTool(), { policy: { rules: { requireApproval: ['vcs:psuh'] } } }), 'Deny policy.invalid');
    assert.equal(outcome(aTool(), { policy: { egress: { allow: ['api.*.com'] } } }), 'Deny policy.invalid');
    const decider = createDecider(aSnapshot({ level: 'senior' }));
    assert.equal(decider.forgeLimits.allowed, false);
    assert.match(decider.decide(aTool()).reason, /access level "senior" does not exist/);
  });

  it('a rule that throws denies the request', () => {
    const hostile = {
      ...aTool(),
      get arguments(): never {
        throw new Error('boom');
      },
    };
    assert.equal(outcome(hostile), 'Deny internal');
    const unknown = { kind: 'Nonsense' } as unknown as PolicyRequest;
    assert.equal(decide(unknown).effect, 'Deny');
  });

  it('reasons contain no control characters', () => {
    const { reason } = decide(aTool({ name: 'a\u001b[31m\u202e', category: 'design' }));
    assert.match(reason, /^Tool "a\\u\{1b\}\[31m\\u\{202e\}" is of category design/);
  });
});

describe('constraints of a level', () => {
  const full = { autonomy: 'Full' as const };
  const shell = { grants: { tools: ['*'], shell: ['git status', 'npm *'] } };

  it('the lowest level allows no network, even to a tool allowed by name', () => {
    const policy = { ...full, tools: { allow: ['web_fetch'] } };
    assert.equal(outcome(web, { level: 'sandboxed', policy }), 'Deny constraint.network');
    assert.equal(
      outcome(web, { policy: { ...full, constraints: { network: 'None' as const } } }),
      'Deny constraint.network',
    );
  });

  it('the address of a web call is checked against the same lists as a connection', () => {
    const policy = { ...full, egress: { allow: ['**.example.com', 'example.org:80'] } };
    const agent = { grants: { tools: ['*'], network: ['api.example.com', 'example.org:80'] } };
    const call = (url: string) => outcome({ ...web, arguments: { url } }, { policy, agent });
    assert.equal(call('https://api.example.com/x'), 'Allow grant.tools');
    assert.equal(call('http://example.org/'), 'Allow grant.tools');
    assert.equal(call('https://evil.example.com/'), 'Deny grant.network');
    assert.equal(call('https://api.example.com:8443/'), 'Deny grant.network');
    assert.equal(call('https://api.example.com@evil.net/'), 'Deny grant.network');
    const several = { ...web, arguments: { url: ['https://api.example.com/', 'https://evil.net/'] } };
    assert.equal(outcome(several, { policy, agent }), 'Deny grant.network');
    assert.equal(call('file:///etc/passwd'), 'Deny constraint.network');
    assert.equal(call('api.example.com'), 'Deny constraint.network');
  });

  it('a terminal runs only granted command lines without shell metacharacters', () => {
    const call = (args: Record<string, unknown>, level = 'standard') =>
      outcome(
        { ...terminal, arguments: args as never },
        { level, policy: { ...full, level: { ceiling: 'elevated' } }, agent: shell },
      );
    assert.equal(outcome(terminal, { policy: full }), 'Deny grant.shell');
    assert.equal(
      outcome(terminal, { policy: { ...full, tools: { allow: ['shell'] } }, level: 'restricted' }),
      'Deny constraint.terminal',
    );
    assert.equal(call({ command: 'git status' }), 'Allow grant.tools');
    assert.equal(call({ command: 'npm', args: ['test'] }), 'Allow grant.tools');
    assert.equal(call({ command: 'git push' }), 'Deny grant.shell');
    assert.equal(call({ command: 'npm test; curl evil' }), 'Deny grant.shell');
    assert.equal(call({ command: 'npm $(id)' }, 'elevated'), 'Deny grant.shell');
    assert.equal(call({ command: 'npm test *' }), 'Deny grant.shell');
    assert.equal(call({}), 'Deny grant.shell');
    assert.equal(call({ command: 'npm', args: [1] }), 'Deny grant.shell');
  });

  it('a program runs with granted words, of which none passes for two', () => {
    const grants = { tools: ['*'], shell: ['git status', 'rg *', 'git commit -m *'] };
    const call = (command: string, args?: Json, shell = grants.shell, level = 'standard') => {
      const snapshot = {
        level,
        policy: { ...full, level: { ceiling: 'elevated' } },
        agent: { grants: { ...grants, shell } },
      };
      const input = { command, ...(args === undefined ? {} : { args }) };
      return outcome({ ...terminal, name: 'shell_exec', arguments: input }, snapshot);
    };
    for (const [command, args] of [
      ['git', ['status']],
      ['rg', ['foo(bar|baz)$', '*.ts']],
      ['git', ['commit', '-m', 'it "works"; see (1)']],
    ] as const) {
      assert.equal(call(command, [...args]), 'Allow grant.tools');
    }
    const denied = [
      ['git status', []],
      ['git', ['status ']],
      ['git', ['status', '']],
      ['git', ['commit -m x']],
      ['git', ['commit', '-m x']],
      ['git', []],
      ['rgrep', ['x']],
      ['git', 'status'],
      ['git', [1]],
    ] as const;
    for (const [command, args] of denied) assert.equal(call(command, args as Json), 'Deny grant.shell', command);
    assert.equal(call('ls', [], ['*']), 'Deny grant.shell', 'a level with RestrictedCommands names its programs');
    assert.equal(call('ls', [], ['*'], 'elevated'), 'Allow grant.tools');
    const programs = (shell: string[], level: string) =>
      createDecider(
        aSnapshot({
          level,
          policy: { ...full, level: { ceiling: 'elevated' } },
          agent: { grants: { ...grants, shell } },
        }),
      ).programs;
    assert.deepEqual(programs(grants.shell, 'standard'), ['git', 'rg']);
    assert.deepEqual(programs(['git *', 'py* x'], 'standard'), ['git']);
    assert.deepEqual(programs(['git *', 'py* x'], 'elevated'), 'any');
    assert.deepEqual(programs(['git *'], 'sandboxed'), []);
  });

  it('two lists of words never have the same command line', () => {
    const words = fc.array(
      fc.array(fc.constantFrom('a', ' ', '"', '\\', "'", '\n'), { maxLength: 3 }).map((parts) => parts.join('')),
      { maxLength: 3 },
    );
    fc.assert(
      fc.property(words, words, (first, second) => {
        assert.equal(commandLine(first) === commandLine(second), JSON.stringify(first) === JSON.stringify(second));
      }),
      { seed: 1, numRuns: 3_000 },
    );
  });

  it('git constraints depend on the arguments and not on the tool name', () => {
    const git = (action: string, args?: JsonObject) =>
      aTool({ name: 'x', category: 'version_control', action, ...(args === undefined ? {} : { arguments: args }) });
    assert.equal(outcome(git('vcs:push'), { level: 'restricted' }), 'Deny constraint.git');
    assert.equal(outcome(git('vcs:push')), 'Allow grant.tools');
    assert.equal(
      outcome(git('vcs:read', { from_url: 'https://example.com/r.git' }), { level: 'sandboxed' }),
      'Deny constraint.git',
    );
    assert.equal(
      outcome(git('vcs:read', { remote: 'git@example.com:r.git' }), { level: 'sandboxed' }),
      'Deny constraint.git',
    );
    for (const args of [{ remotes: ['origin', 'git@example.com:r.git'] }, { clone: { from: { url: 'ssh://h/r' } } }]) {
      assert.equal(outcome(git('vcs:read', args), { level: 'sandboxed' }), 'Deny constraint.git');
    }
    for (const remote of ['evil.example:x.git', 'ext::sh -c id', '//host/x.git', 'git fetch evil.example:x']) {
      for (const args of [{ remote }, { args: ['fetch', [remote]] }, { clone: [{ from: { url: remote } }] }]) {
        assert.equal(outcome(git('vcs:read', args), { level: 'sandboxed' }), 'Deny constraint.git', remote);
        assert.equal(outcome(git('vcs:read', args), { level: 'restricted' }), 'Allow grant.tools', remote);
      }
    }
    for (const text of ['HEAD:path', 'main:src/x.ts', 'stash@{0}', 'C:\\a', 'a:b', ':(glob)*', 'feature/a.b:file']) {
      assert.equal(outcome(git('vcs:read', { args: [text] }), { level: 'sandboxed' }), 'Allow grant.tools', text);
    }
    assert.equal(outcome(git('vcs:commit', { message: 'why' }), { level: 'sandboxed' }), 'Allow grant.tools');
    const clone = aTool({
      name: 'git_clone',
      category: 'version_control',
      action: 'comms:external',
      arguments: { url: 'https://example.com/r.git', folder: 'r' },
    });
    const agent = { grants: { tools: ['*'], network: ['example.com'] } };
    const policy = { ...full, egress: { allow: ['example.com'] } };
    assert.equal(outcome(clone, { level: 'sandboxed', agent, policy }), 'Deny constraint.network');
    assert.equal(outcome(clone, { agent, policy }), 'Allow grant.tools');
    const local = { ...policy, constraints: { git: 'LocalOnly' } } as const;
    assert.equal(outcome(clone, { agent, policy: local }), 'Deny constraint.git');
  });

  it('actions that need approval at a level escalate, and a later denial overrides the escalation', () => {
    const mutate = aTool({ name: 'sql', category: 'database', action: 'db:mutate' });
    const policy = { ...full, tools: { allow: ['sql'] } };
    assert.equal(outcome(mutate, { level: 'restricted', policy }), 'Escalate constraint.approval');
    assert.equal(outcome(mutate, { policy }), 'Allow grant.tools');
    const leaking = { ...mutate, arguments: { text: `AKIA${'A'.repeat(16)}` } };
    assert.equal(outcome(leaking, { level: 'restricted', policy }), 'Deny detector.credential');
  });
});

describe('pinned arguments', () => {
  const pins = [{ tool: 'schedule_*', argument: 'ref', allow: ['my-*', 'team/**'] }];
  const call = (args: unknown) =>
    outcome(aTool({ name: 'schedule_create', arguments: args as never }), {
      agent: { grants: { tools: ['*'] }, arguments: pins },
    });

  it('a pinned argument is required and must match', () => {
    assert.equal(call({ ref: 'my-report' }), 'Allow grant.tools');
    assert.equal(call({ ref: 'team/a/b' }), 'Allow grant.tools');
    assert.equal(call({ ref: ['my-a', 'my-b'] }), 'Allow grant.tools');
    for (const args of [
      { ref: 'yours' },
      {},
      { ref: ['my-a', 'yours'] },
      { ref: { a: 1 } },
      { ref: null },
      { ref: [] },
      [],
      'my-a',
    ]) {
      assert.equal(call(args), 'Deny arguments', JSON.stringify(args));
    }
  });

  it('a slash or `..` never matches a pin', () => {
    for (const ref of ['my-/x', 'my-a/../../etc', 'team/../yours', 'my-%2e%2e', 'my-\\x'])
      assert.equal(call({ ref }), 'Deny arguments', ref);
  });

  it('several pins on one argument must all hold', () => {
    const both = [...pins, { tool: '*', argument: 'ref', allow: ['*-report'] }];
    const agent = { grants: { tools: ['*'] }, arguments: both };
    assert.equal(
      outcome(aTool({ name: 'schedule_x', arguments: { ref: 'my-report' } }), { agent }),
      'Allow grant.tools',
    );
    assert.equal(outcome(aTool({ name: 'schedule_x', arguments: { ref: 'my-plan' } }), { agent }), 'Deny arguments');
  });
});

describe('autonomy', () => {
  const act = (action: string) => aTool({ name: 't', category: 'code_execution', action });

  it('autonomy is Semi by default and escalates deployments, spending and external communication', () => {
    assert.equal(outcome(act('code:write')), 'Allow grant.tools');
    for (const action of ['deploy:staging', 'budget:spend', 'org:hire', 'arch:decide', 'db:mutate']) {
      assert.equal(outcome(act(action)), 'Escalate autonomy', action);
    }
  });

  it('an action that no rule knows is denied, whatever the policy says about its category', () => {
    const policy = { autonomy: 'Full' as const, rules: { deny: ['vcs'] } };
    for (const action of ['vcs:other', 'unknown:action', 'code', '']) {
      assert.equal(outcome(act(action), { policy }), 'Deny action.unknown', action);
      assert.equal(decide(act(action), { policy }).risk, 'high');
    }
  });

  it('autonomy is the tighter of policy and agent, and at most Semi at the lowest level', () => {
    const full = { autonomy: 'Full' as const };
    assert.equal(outcome(act('deploy:staging'), { policy: full }), 'Allow grant.tools');
    assert.equal(outcome(act('deploy:staging'), { agent: { grants: { tools: ['*'] }, ...full } }), 'Escalate autonomy');
    assert.equal(
      outcome(act('code:write'), { policy: full, agent: { grants: { tools: ['*'] }, autonomy: 'Supervised' } }),
      'Escalate autonomy',
    );
    assert.equal(outcome(act('code:read'), { policy: { autonomy: 'Locked' } }), 'Escalate autonomy');
    assert.equal(outcome(act('deploy:staging'), { policy: full, level: 'sandboxed' }), 'Escalate autonomy');
  });

  it('rules.allow exempts only low and medium risks from approval', () => {
    const allow = { rules: { allow: ['docs:write', 'comms:external'] }, autonomy: 'Supervised' as const };
    assert.equal(outcome(act('docs:write'), { policy: allow }), 'Allow grant.tools');
    assert.equal(outcome(act('deploy:staging'), { policy: { rules: { allow: ['deploy'] } } }), 'Escalate autonomy');
    assert.equal(outcome(act('docs:write'), { policy: { ...allow, autonomy: 'Locked' } }), 'Escalate autonomy');
  });

  it('rules.requireApproval is reported before autonomy', () => {
    const policy = { autonomy: 'Full' as const, rules: { requireApproval: ['vcs:push'] } };
    assert.equal(outcome(act('vcs:push'), { policy }), 'Escalate rules.requireApproval');
  });
});
