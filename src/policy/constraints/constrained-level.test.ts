import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { SnapshotChange } from '../policy.testing.ts';
import type { ExplainedDecision, PolicyRequest } from '../types.ts';

const ELEVATED = { level: { ceiling: 'elevated' as const }, autonomy: 'Full' as const, egress: { allow: ['**:*'] } };
const GRANTS = { tools: ['*'], network: ['**:*', 'api.example.com'], shell: ['*'] };

function explain(
  request: PolicyRequest,
  constraints: AgentSpec['constraints'],
  change: SnapshotChange = {},
): ExplainedDecision {
  return createDecider(
    aSnapshot({
      level: 'elevated',
      policy: ELEVATED,
      project: '/project',
      ...change,
      agent: {
        grants: GRANTS,
        forge: { enabled: true, apis: ['fetch', 'fs.readFile'] },
        ...(constraints && { constraints }),
      },
    }),
  ).explain(request);
}

const web = aTool({ name: 'web_fetch', category: 'web', action: 'comms:external' });
const program = aTool({ name: 'shell_exec', category: 'terminal', action: 'code:write', arguments: { command: 'ls' } });
const push = aTool({ name: 'git_push', category: 'version_control', action: 'vcs:push' });
const fetchUrl = aTool({
  ...push,
  name: 'git_fetch',
  action: 'vcs:read',
  arguments: { remote: 'https://example.com/a' },
});

/** One request per dimension that the constraint of the agent refuses, and elevated allows. */
const REFUSED: readonly (readonly [NonNullable<AgentSpec['constraints']>, PolicyRequest, string])[] = [
  [{ network: 'None' }, web, 'Deny constraint.network'],
  [{ network: 'None' }, { kind: 'Network', host: 'api.example.com', port: 443 }, 'Deny constraint.network'],
  [{ network: 'Allowlist' }, { kind: 'Network', host: 'example.org', port: 443 }, 'Deny constraint.network'],
  [{ terminal: 'None' }, program, 'Deny constraint.terminal'],
  [{ terminal: 'RestrictedCommands' }, program, 'Deny grant.shell'],
  [{ git: 'ReadAndBranch' }, push, 'Deny constraint.git'],
  [{ git: 'LocalOnly' }, fetchUrl, 'Deny constraint.git'],
  [{ files: 'Workspace' }, { kind: 'File', path: '/project/a', access: 'read' }, 'Deny constraint.files'],
  [{ files: 'Project' }, { kind: 'File', path: '/etc/hosts', access: 'write' }, 'Deny constraint.files'],
  [{ requireApproval: ['code:read'] }, aTool(), 'Escalate constraint.approval'],
];

describe('constraints of an agent', () => {
  for (const [constraints, request, expected] of REFUSED) {
    const [stated] = Object.entries(constraints);
    assert.ok(stated);
    const [dimension, value] = stated;
    const asked = request.kind === 'Tool' ? request.name : request.kind;
    it(`${dimension} ${String(value)} of an agent decides about ${asked}, and the reason names the field`, () => {
      assert.equal(explain(request, undefined).effect, 'Allow');
      const { effect, rule, reason } = explain(request, constraints);
      assert.equal(`${effect} ${rule}`, expected);
      assert.ok(reason.includes(`spec.constraints.${dimension} of agent "analyst"`), reason);
      assert.doesNotMatch(reason, /level/);
    });
  }

  it('a field that is not set leaves the level and the policy as they are', () => {
    const request = { ...web, arguments: { url: 'https://api.example.com/' } };
    assert.equal(explain(request, { files: 'Workspace', terminal: 'None' }).effect, 'Allow');
    const { rule, reason } = explain(
      request,
      { files: 'Workspace' },
      { level: 'sandboxed', policy: { ...ELEVATED, tools: { allow: ['*'] } } },
    );
    assert.equal(rule, 'constraint.network');
    assert.match(reason, /which level sandboxed does not allow; level restricted allows it/);
  });

  it('a constraint that is looser than level or policy widens nothing, and the explanation says that it has no effect', () => {
    const host: PolicyRequest = { kind: 'Network', host: 'api.example.com', port: 443 };
    const details = (change: SnapshotChange): string | undefined =>
      explain(host, { network: 'Open' }, change).trace.find(({ rule }) => rule === 'constraint.network')?.detail;
    assert.equal(
      details({ policy: { ...ELEVATED, constraints: { network: 'Allowlist' } } }),
      'constraints.network of TrustPolicy "standard" is Allowlist; spec.constraints.network Open of agent "analyst" has no effect, because what decides is tighter',
    );
    assert.equal(
      details({ level: 'restricted' }),
      'level restricted has network Allowlist; spec.constraints.network Open of agent "analyst" has no effect, because what decides is tighter',
    );
    assert.equal(
      explain(web, { network: 'Open' }, { policy: { ...ELEVATED, constraints: { network: 'None' } } }).effect,
      'Deny',
    );
  });

  it('the level decides of equal values, then the policy', () => {
    const none = { network: 'None' as const };
    const policy = { ...ELEVATED, tools: { allow: ['*'] } };
    assert.match(explain(web, none, { policy, level: 'sandboxed' }).reason, /which level sandboxed does not allow/);
    const both = explain(web, none, { policy: { ...policy, constraints: none } });
    assert.match(both.reason, /which constraints\.network of TrustPolicy "standard" does not allow\./);
  });

  it('the programs and the host functions of forged tools follow the constraints', () => {
    const decider = (constraints: AgentSpec['constraints']) =>
      createDecider(
        aSnapshot({
          level: 'elevated',
          policy: { ...ELEVATED, forge: { apis: ['fetch', 'crypto'] } },
          agent: {
            grants: GRANTS,
            forge: { enabled: true, modes: ['Sandbox'], apis: ['fetch', 'crypto'] },
            ...(constraints && { constraints }),
          },
        }),
      );
    assert.deepEqual([decider(undefined).programs, decider({ terminal: 'None' }).programs], ['any', []]);
    assert.deepEqual(decider(undefined).forgeLimits.apis, ['fetch', 'crypto']);
    assert.deepEqual(decider({ network: 'None' }).forgeLimits.apis, ['crypto']);
  });

  it('constraints hold at the level of each tool category', () => {
    const { effect, reason } = createDecider({
      ...aSnapshot({
        level: 'sandboxed',
        policy: ELEVATED,
        agent: { grants: GRANTS, constraints: { network: 'None' } },
      }),
      categoryLevels: { web: 'elevated' },
    }).decide(web);
    assert.equal(effect, 'Deny');
    assert.match(reason, /spec\.constraints\.network of agent/);
  });

  it('a custom action of the policy waits for an approver, and one that no policy registers denies everything', () => {
    const action = 'example.com/crm:refund';
    const refund = aTool({ name: 'refund', action });
    const policy = { ...ELEVATED, actions: [{ name: action }] };
    const waits = explain(refund, { requireApproval: ['example.com/crm'] }, { policy });
    assert.equal(`${waits.effect} ${waits.rule}`, 'Escalate constraint.approval');
    const { effect, rule, reason } = explain(aTool(), { requireApproval: [action] });
    assert.equal(`${effect} ${rule}`, 'Deny policy.invalid');
    assert.match(reason, /spec\.constraints\.requireApproval of agent "analyst" "example\.com\/crm:refund" is not/);
  });
});
