import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ForgeMode, ToolApi } from '../../api/v1alpha1/common.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { SnapshotChange } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';

function outcome(request: PolicyRequest, change: SnapshotChange = {}): string {
  const { effect, rule } = createDecider(aSnapshot(change)).decide(request);
  return `${effect} ${rule}`;
}

describe('decisions about connections', () => {
  const to = (host: string, port = 443): PolicyRequest => ({ kind: 'Network', host, port });
  const open = { agent: { grants: { network: ['**'] } }, policy: { egress: { allow: ['*.example.com'] } } };

  it('a connection needs the grant, the policy and the level', () => {
    assert.equal(outcome(to('api.example.com'), open), 'Allow grant.network');
    assert.equal(outcome(to('API.example.com.'), open), 'Allow grant.network');
    assert.equal(outcome(to('api.example.com', 22), open), 'Deny grant.network');
    assert.equal(outcome(to('example.com'), open), 'Deny policy.egress');
    assert.equal(outcome(to('api.example.com'), { ...open, policy: {} }), 'Deny policy.egress');
    assert.equal(outcome(to('api.example.com'), { policy: open.policy }), 'Deny grant.network');
    assert.equal(outcome(to('api.example.com'), { ...open, level: 'sandboxed' }), 'Deny constraint.network');
    assert.equal(outcome(to('api.example.com'), { ...open, level: 'restricted' }), 'Allow grant.network');
  });

  it('a wildcard never grants an IP address', () => {
    const all = { agent: { grants: { network: ['**:*'] } }, policy: { egress: { allow: ['**:*'] } } };
    for (const host of ['127.0.0.1', '2130706433', '::1', '[::1]', '169.254.169.254']) {
      assert.equal(outcome(to(host), all), 'Deny grant.network', host);
    }
    assert.equal(outcome(to('example.org', 8080), all), 'Allow grant.network');
    assert.equal(outcome(to('example.org', Number.NaN), all), 'Deny grant.network');
    assert.equal(outcome(to('example.org:22', 443), all), 'Deny grant.network');
  });

  it('a custom level allows no more connections than its base', () => {
    const constraints = {
      files: 'Full',
      network: 'Open',
      git: 'Full',
      code: 'Isolated',
      terminal: 'Full',
      requireApproval: [],
    } as const;
    const levels = [
      {
        name: 'clerk',
        base: 'restricted' as const,
        categories: [],
        constraints: { ...constraints, requireApproval: [] },
      },
    ];
    const agent = { grants: { network: ['*'] } };
    const policy = { levels, egress: { allow: ['*'] } };
    assert.equal(outcome(to('example.org'), { agent, policy, level: 'clerk' }), 'Deny constraint.network');
  });

  it('a level with an allowlist requires a named domain', () => {
    const all = { agent: { grants: { network: ['*'] } }, policy: { egress: { allow: ['*'] } } };
    assert.equal(outcome(to('example.org'), all), 'Allow grant.network');
    assert.equal(outcome(to('example.org'), { ...all, level: 'restricted' }), 'Deny constraint.network');
  });

  it('an object from before the rule, with a wildcard on a public suffix, allows nothing', () => {
    for (const [network, allow] of [
      [['**.com'], ['*']],
      [['*'], ['**.com']],
      [['api.example.com', '*.com'], ['**']],
    ] as const) {
      const change = { agent: { grants: { network: [...network] } }, policy: { egress: { allow: [...allow] } } };
      for (const level of ['restricted', 'standard']) {
        const decider = createDecider(aSnapshot({ ...change, level }));
        const { effect, rule, reason } = decider.decide(to('api.example.com'));
        assert.deepEqual([effect, rule], ['Deny', 'policy.invalid']);
        assert.match(reason, /public suffix "com"/);
      }
    }
  });

  it('fewer connections are allowed in a tainted session', () => {
    const tainted = (rule?: { deny?: ('network' | 'forge')[]; network?: string[] }) =>
      outcome(to('api.example.com'), {
        ...open,
        tainted: true,
        policy: { ...open.policy, ...(rule === undefined ? {} : { tainted: rule }) },
      });
    assert.equal(tainted(), 'Allow grant.network');
    assert.equal(tainted({ network: [] }), 'Deny tainted.hosts');
    assert.equal(tainted({ network: ['api.example.com'] }), 'Allow grant.network');
    assert.equal(tainted({ deny: ['network'], network: ['api.example.com'] }), 'Deny tainted.network');
  });
});

describe('decisions about files', () => {
  const at = (path: string, access: 'read' | 'write' = 'read'): PolicyRequest => ({ kind: 'File', path, access });

  it('the level allows files in the workspace, the project or anywhere', () => {
    const project = { project: '/project' };
    assert.equal(outcome(at('data/a.csv')), 'Allow constraint.files');
    assert.equal(outcome(at('/workspace/a', 'write')), 'Allow constraint.files');
    assert.equal(outcome(at('/workspaces/a')), 'Deny constraint.files');
    assert.equal(outcome(at('/project/a'), { ...project, level: 'sandboxed' }), 'Deny constraint.files');
    assert.equal(outcome(at('/project/a'), { ...project, level: 'restricted' }), 'Allow constraint.files');
    assert.equal(outcome(at('/etc/hosts'), { level: 'elevated' }), 'Deny constraint.files');
    assert.equal(
      outcome(at('/etc/hosts'), { level: 'elevated', policy: { level: { ceiling: 'elevated' } } }),
      'Allow constraint.files',
    );
  });

  it('a path that is not in plain form is denied', () => {
    for (const path of ['../x', 'a/../../x', 'a\\..\\x', 'a/%2e%2e/x', 'a\0', '']) {
      assert.equal(outcome(at(path)), 'Deny path.form', JSON.stringify(path));
    }
  });

  it('a relative workspace makes the policy invalid', () => {
    const decider = createDecider({ ...aSnapshot(), workspace: 'relative' });
    assert.equal(decider.decide(at('a')).rule, 'policy.invalid');
  });
});

describe('decisions about memory, messages, models and promotions', () => {
  it('memory keys are granted separately for reading and writing', () => {
    const agent = { grants: { memory: { read: ['self.*', 'team.facts'] } } };
    const key = (key: string, access: 'read' | 'write'): PolicyRequest => ({ kind: 'Memory', key, access });
    assert.equal(outcome(key('self.a.b', 'read'), { agent }), 'Allow grant.memory');
    assert.equal(outcome(key('self.a', 'write'), { agent }), 'Deny grant.memory');
    assert.equal(outcome(key('team.secrets', 'read'), { agent }), 'Deny grant.memory');
  });

  it('a tainted session writes no shared memory where the policy denies it', () => {
    const agent = { grants: { memory: { read: ['*'], write: ['*'] } } };
    const policy: TrustPolicySpec = { tainted: { deny: ['memory'] } };
    const write = (key: string) => ({ kind: 'Memory' as const, key, access: 'write' as const });
    for (const key of ['shared', 'shared.plan'])
      assert.equal(outcome(write(key), { agent, policy, tainted: true }), 'Deny tainted.memory');
    assert.equal(outcome(write('self.plan'), { agent, policy, tainted: true }), 'Allow grant.memory');
    assert.equal(outcome(write('shared.plan'), { agent, policy }), 'Allow grant.memory');
    assert.equal(
      outcome({ ...write('shared.plan'), access: 'read' }, { agent, policy, tainted: true }),
      'Allow grant.memory',
    );
  });

  it('a tainted session calls only the tools that tainted.tools names', () => {
    const agent = { grants: { tools: ['*'] } };
    const policy: TrustPolicySpec = { tainted: { tools: ['file_read'] } };
    const read = aTool({ name: 'file_read', category: 'file_system', action: 'code:read' });
    const write = aTool({ name: 'file_write', category: 'file_system', action: 'code:write' });
    const discover = aTool({ name: 'discover_capabilities', category: 'other', action: 'code:read' });
    assert.equal(outcome(read, { agent, policy, tainted: true }), 'Allow grant.tools');
    assert.equal(outcome(write, { agent, policy, tainted: true }), 'Deny tainted.tools');
    assert.equal(outcome(write, { agent, policy }), 'Allow grant.tools');
    assert.equal(outcome(discover, { agent, policy, tainted: true }), 'Allow grant.tools');
    assert.equal(outcome(read, { agent, policy: { tainted: { tools: [] } }, tainted: true }), 'Deny tainted.tools');
  });

  it('a tool that sends to hosts is bound by the network of a tainted session, also without a connection of its own', () => {
    const agent = { grants: { tools: ['*'] } };
    const hosts = ['crm.example.com', 'files.example.com:8443'];
    const call = (rest: Parameters<typeof aTool>[0] = {}): PolicyRequest =>
      aTool({ name: 'crm_add', category: 'analytics', hosts, ...rest });
    const outcomeOf = (tainted: TrustPolicySpec['tainted'], request = call()) =>
      outcome(request, { agent, policy: { tainted: tainted ?? {} }, level: 'standard', tainted: true });
    assert.equal(outcomeOf({}), 'Allow grant.tools');
    assert.equal(outcomeOf({ deny: ['network'] }), 'Deny tainted.network');
    assert.equal(outcomeOf({ network: ['**.example.com'] }), 'Deny tainted.hosts', 'another port');
    assert.equal(outcomeOf({ network: ['**.example.com:*'] }), 'Allow grant.tools');
    assert.equal(outcomeOf({ network: [] }, call({ hosts: [] })), 'Allow grant.tools');
    // Its code opens connections, which are decided apart.
    assert.equal(outcomeOf({ deny: ['network'], network: [] }, call({ forged: true })), 'Allow grant.tools');
    assert.equal(
      outcome(call(), { agent, policy: { tainted: { network: [] } }, level: 'standard' }),
      'Allow grant.tools',
    );
  });

  it('messages need a grant, and the policy may deny them in a tainted session', () => {
    const agent = { grants: { messages: ['reviewer', 'team-*'] } };
    const to = (agent: string): PolicyRequest => ({ kind: 'Message', agent });
    assert.equal(outcome(to('reviewer'), { agent }), 'Allow grant.messages');
    assert.equal(outcome(to('team-b'), { agent, tainted: true }), 'Allow grant.messages');
    assert.equal(outcome(to('other'), { agent }), 'Deny grant.messages');
    assert.equal(
      outcome(to('team-b'), { agent, tainted: true, policy: { tainted: { deny: ['message'] } } }),
      'Deny tainted.message',
    );
  });

  it('a model must be named by the agent and allowed by the policy', () => {
    const use = (model: string): PolicyRequest => ({ kind: 'Model', model });
    assert.equal(outcome(use('openai/gpt-4o-mini')), 'Allow grant.model');
    assert.equal(outcome(use('openai/gpt-4o')), 'Deny grant.model');
    assert.equal(
      outcome(use('openai/gpt-4o-mini'), { policy: { models: { allow: ['anthropic/*'] } } }),
      'Deny policy.models',
    );
    assert.equal(outcome(use('openai/gpt-4o-mini'), { policy: { models: { allow: [] } } }), 'Deny policy.models');
    const byDefault = { agent: { model: { primary: 'default/default' } } };
    assert.equal(outcome(use('replay/scripted'), byDefault), 'Allow grant.model');
    assert.equal(
      outcome(use('replay/scripted'), { ...byDefault, policy: { models: { allow: ['openai/*'] } } }),
      'Deny policy.models',
    );
  });

  it('a promotion to tier Shared always needs an approver, to tier Agent only if the policy requires it', () => {
    const to = (tier: 'Agent' | 'Shared'): PolicyRequest => ({ kind: 'Promote', tool: 't', tier });
    assert.equal(outcome(to('Agent')), 'Allow promotion.human');
    assert.equal(outcome(to('Shared'), { policy: { autonomy: 'Full' } }), 'Escalate promotion.human');
    assert.equal(
      outcome(to('Agent'), { policy: { promotion: { toAgent: { requireHuman: true } } } }),
      'Escalate promotion.human',
    );
    assert.equal(outcome(to('Agent'), { tainted: true }), 'Deny tainted.promote');
  });
});

describe('decisions about forging', () => {
  const forge = (
    mode: ForgeMode = 'Compose',
    apis: ToolApi[] = [],
    domains: string[] = [],
    paths: string[] = [],
  ): PolicyRequest => ({
    kind: 'Forge',
    mode,
    apis,
    domains,
    paths,
  });
  const enabled = { forge: { enabled: true, modes: ['Compose' as const, 'Sandbox' as const] } };
  const apis = (...list: ToolApi[]) => ({ forge: { ...enabled.forge, apis: list } });

  it('forging is off by default, and limited to Compose without modes', () => {
    assert.equal(outcome(forge()), 'Deny forge.enabled');
    assert.equal(outcome(forge(), { agent: { forge: { enabled: true } } }), 'Allow forge.enabled');
    assert.equal(outcome(forge('Sandbox'), { agent: { forge: { enabled: true } } }), 'Deny forge.modes');
  });

  it('higher levels add pure JavaScript, then host functions, to Compose', () => {
    assert.equal(outcome(forge('Compose'), { agent: enabled, level: 'sandboxed' }), 'Allow forge.enabled');
    assert.equal(outcome(forge('Sandbox'), { agent: enabled, level: 'sandboxed' }), 'Deny level.forge');
    assert.equal(outcome(forge('Sandbox'), { agent: enabled, level: 'restricted' }), 'Allow forge.enabled');
    for (const api of ['crypto', 'clock', 'random', 'fetch', 'fs.readFile'] as const) {
      const change = { agent: apis(api), policy: { forge: { apis: [api] } } };
      assert.equal(outcome(forge('Sandbox', [api]), { ...change, level: 'restricted' }), 'Deny level.forge');
      assert.equal(outcome(forge('Sandbox', [api]), change), 'Allow forge.enabled');
    }
  });

  it('a host function must be allowed by both the agent and the policy', () => {
    assert.equal(
      outcome(forge('Sandbox', ['crypto']), { agent: enabled, policy: { forge: { apis: ['crypto'] } } }),
      'Deny forge.apis',
    );
    assert.equal(outcome(forge('Sandbox', ['crypto']), { agent: apis('crypto') }), 'Deny policy.forge.apis');
    const noNetwork = { forge: { apis: ['fetch' as const] }, constraints: { network: 'None' as const } };
    assert.equal(
      outcome(forge('Sandbox', ['fetch']), { agent: apis('fetch'), policy: noNetwork }),
      'Deny constraint.network',
    );
  });

  it('every list must cover the domains of a forged tool', () => {
    const policy = {
      forge: { apis: ['fetch' as const], domains: ['*.example.com'] },
      egress: { allow: ['**.example.com'] },
    };
    const agent = { ...apis('fetch'), grants: { network: ['api.example.com'] } };
    const ask = (...domains: string[]) => outcome(forge('Sandbox', ['fetch'], domains), { agent, policy });
    assert.equal(ask('api.example.com'), 'Allow forge.enabled');
    for (const domain of ['example.com', 'www.example.com', 'evil.net', 'api.*.com', '*', '*.com']) {
      assert.equal(ask('api.example.com', domain), 'Deny policy.forge.domains', domain);
    }
    assert.equal(outcome(forge('Sandbox', [], ['api.example.com']), { agent, policy }), 'Deny policy.forge.domains');
  });

  it('the file scope must cover the paths of a forged tool', () => {
    const change = { agent: apis('fs.readFile'), policy: { forge: { apis: ['fs.readFile' as const] } } };
    const ask = (...paths: string[]) => outcome(forge('Sandbox', ['fs.readFile'], [], paths), change);
    assert.equal(ask('data/*.csv', '/workspace/**'), 'Allow forge.enabled');
    for (const path of ['/etc/passwd', '/**', '../x', '/work*/x', 'a/../../x'])
      assert.equal(ask(path), 'Deny constraint.files', path);
    assert.equal(outcome(forge('Sandbox', [], [], ['data']), change), 'Deny constraint.files');
  });

  it('forging is denied in a tainted session and while suspended', () => {
    assert.equal(outcome(forge(), { agent: enabled, tainted: true }), 'Deny tainted.forge');
    assert.equal(
      outcome(forge(), { agent: enabled, tainted: true, policy: { tainted: { deny: [] } } }),
      'Allow forge.enabled',
    );
    assert.equal(createDecider(aSnapshot({ agent: enabled, tainted: true })).forgeLimits.allowed, false);
    assert.equal(createDecider(aSnapshot({ agent: enabled, policy: { suspend: true } })).forgeLimits.allowed, false);
  });

  it('the forge limits are the intersection of agent, policy and level, with defaults', () => {
    const { policyRevision, ...defaults } = createDecider(
      aSnapshot({ agent: enabled, level: 'restricted' }),
    ).forgeLimits;
    assert.match(policyRevision ?? '', /^sha256:[0-9a-f]{64}$/);
    assert.deepEqual(defaults, {
      allowed: true,
      modes: ['Compose', 'Sandbox'],
      apis: [],
      domains: [],
      durationMilliseconds: 5_000,
      memoryBytes: 134_217_728,
      sessionTools: 10,
      agentTools: 50,
      minTestCases: 1,
    });
    const policy = {
      forge: {
        apis: ['fetch' as const, 'crypto' as const],
        domains: ['api.example.com'],
        limits: { duration: '2s', memory: '64Mi', sessionTools: 3, minTestCases: 2 },
      },
    };
    const { forgeLimits: ceilings } = createDecider(aSnapshot({ agent: apis('fetch', 'clock'), policy }));
    assert.deepEqual(ceilings.apis, ['fetch']);
    assert.deepEqual(ceilings.domains, ['api.example.com']);
    const offline = createDecider(
      aSnapshot({ agent: apis('fetch', 'crypto'), policy: { ...policy, constraints: { network: 'None' } } }),
    ).forgeLimits;
    assert.deepEqual([offline.apis, offline.domains], [['crypto'], []]);
    assert.equal(ceilings.durationMilliseconds, 2_000);
    assert.equal(ceilings.memoryBytes, 67_108_864);
    assert.equal(ceilings.sessionTools, 3);
    assert.equal(ceilings.agentTools, 50);
    assert.equal(ceilings.minTestCases, 2);
  });

  it('the right to forge allows forge_tool, drop_tool and forged tools without a grant by name', () => {
    const change = { agent: { ...enabled, grants: { tools: [] } } };
    const forgeTool: PolicyRequest = {
      kind: 'Tool',
      name: 'forge_tool',
      category: 'other',
      action: 'code:create',
      forged: false,
    };
    const forged: PolicyRequest = {
      kind: 'Tool',
      name: 'csv_rows',
      category: 'code_execution',
      action: 'code:read',
      forged: true,
    };
    assert.equal(outcome(forgeTool, change), 'Allow grant.tools');
    assert.equal(outcome({ ...forgeTool, name: 'drop_tool', action: 'code:write' }, change), 'Allow grant.tools');
    assert.equal(outcome({ ...forgeTool, name: 'drop_tool' }), 'Deny grant.forge');
    assert.equal(outcome(forgeTool, { ...change, tainted: true }), 'Deny tainted.forge');
    assert.equal(outcome(forgeTool), 'Deny grant.forge');
    assert.equal(outcome({ ...forgeTool, forged: true }, { agent: { grants: { tools: [] } } }), 'Deny grant.tools');
    assert.equal(outcome(forged, change), 'Allow grant.tools');
    assert.equal(outcome(forged, { ...change, tainted: true }), 'Allow grant.tools');
    assert.equal(outcome(forged, { agent: { grants: { tools: [] } } }), 'Deny grant.tools');
    assert.equal(outcome(forged, { agent: { grants: { tools: ['csv_*'] } } }), 'Allow grant.tools');
  });
});
