import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { isKnownReason } from './conditions.testing.ts';
import { updateConditions } from './conditions.ts';
import {
  agentFieldsInForceCondition,
  canForgeCondition,
  fieldsInForceCondition,
  mayUseHosts,
} from './spec-conditions.ts';

function anAgentSpec(change: Partial<AgentSpec> = {}): AgentSpec {
  const base = { trustPolicyRef: { name: 'p' }, model: { primary: 'a/b' }, prompt: { system: 'x' } };
  return { ...base, forge: { enabled: true }, ...change };
}

const reasonFor = (agent: AgentSpec, policy: TrustPolicySpec | undefined) =>
  canForgeCondition(agent, 'p', policy)?.reason;

describe('the condition FieldsInForce', () => {
  it('the condition FieldsInForce names the grants of the network in a release without an egress proxy', () => {
    const agent = anAgentSpec({ grants: { network: ['api.example.com'] } });
    assert.equal(agentFieldsInForceCondition(agent, { hasEgress: true }), undefined);
    const without = agentFieldsInForceCondition(agent, { hasEgress: false });
    assert.match(without?.message ?? '', /^spec\.grants\.network has no effect: .*egress\.enabled/);
    assert.ok(without !== undefined && isKnownReason('Agent', without.type, without.reason));
    assert.equal(without.status, 'False');
    assert.equal(agentFieldsInForceCondition(anAgentSpec(), { hasEgress: false }), undefined);
  });

  it('grants for hosts that the constraints of the agent take away need no egress proxy', () => {
    const grants = { network: ['api.example.com'] };
    assert.equal(mayUseHosts(anAgentSpec({ grants })), true);
    assert.equal(mayUseHosts(anAgentSpec({ grants, constraints: { network: 'Allowlist' } })), true);
    const closed = anAgentSpec({ grants, constraints: { network: 'None' } });
    assert.equal(mayUseHosts(closed), false);
    assert.equal(agentFieldsInForceCondition(closed, { hasEgress: false }), undefined);
  });

  it('the condition FieldsInForce is absent for values that have their documented effect', () => {
    const defaults = anAgentSpec({ invocation: 'Tools', grants: { shell: ['ls'], environment: ['LANG'] } });
    assert.equal(fieldsInForceCondition('Agent', defaults), undefined);
    assert.equal(
      fieldsInForceCondition('TrustPolicy', {
        strategy: { type: 'Disabled' },
        promotion: { toShared: { minAgents: 1 } },
      }),
      undefined,
    );
  });

  it('the condition FieldsInForce disappears when the fields are removed', () => {
    const agent = anAgentSpec({ grants: { network: ['api.example.com'] } });
    const found = agentFieldsInForceCondition(agent, { hasEgress: false });
    assert.ok(found);
    const before = updateConditions(undefined, ['FieldsInForce'], [found], 1, new Date(0));
    assert.deepEqual(
      before.map(({ type }) => type),
      ['FieldsInForce'],
    );
    assert.deepEqual(updateConditions(before, ['FieldsInForce'], [], 2, new Date(0)), []);
  });
});

describe('the condition CanForge', () => {
  it('the condition CanForge states that the policy has no judge', () => {
    assert.equal(reasonFor(anAgentSpec(), {}), 'JudgeMissing');
  });

  it('the condition CanForge states that the judge is the primary or a fallback model of the agent', () => {
    assert.equal(reasonFor(anAgentSpec(), { models: { judge: 'a/B' } }), 'JudgeIsAuthor');
    const withFallback = anAgentSpec({ model: { primary: 'a/b', fallbacks: ['a/c'] } });
    assert.equal(reasonFor(withFallback, { models: { judge: 'a/c' } }), 'JudgeIsAuthor');
  });

  it('the condition CanForge is absent when the policy permits the judge, has another judge or is missing, and when the agent may not forge', () => {
    assert.equal(reasonFor(anAgentSpec(), { models: { judge: 'a/b', judgeMayBeAuthor: true } }), undefined);
    assert.equal(reasonFor(anAgentSpec(), { models: { judge: 'a/c' } }), undefined);
    assert.equal(reasonFor(anAgentSpec(), undefined), undefined);
    assert.equal(reasonFor(anAgentSpec({ forge: {} }), {}), undefined);
  });
});
