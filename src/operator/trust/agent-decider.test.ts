import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import { anAgentSpec } from '../../policy/policy.testing.ts';
import { BINDING } from '../../policy/trust/trust.testing.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { agentDecider } from './agent-decider.ts';

const SPEC: TrustPolicySpec = {
  level: { initial: 'sandboxed', ceiling: 'restricted' },
  strategy: { type: 'PerCategory', categories: [{ category: 'code_execution' }] },
};
const RAISED: TrustStatus = { ...BINDING, categories: [{ category: 'code_execution', level: 'restricted' }] };

describe('the decider of the operator', () => {
  const decide = (trust: TrustStatus | undefined): string => {
    const forge = { enabled: true, modes: ['Compose' as const, 'Sandbox' as const] };
    const metadata = { name: 'analyst', namespace: 'team-a', uid: BINDING.agentUid, generation: 2 };
    const status = { level: 'sandboxed', ...(trust === undefined ? {} : { trust }) };
    const agent = { metadata, spec: anAgentSpec({ forge }), status } as unknown as StoredAgent;
    const policy = { metadata: { name: 'standard', uid: BINDING.policyUid, generation: 1 }, spec: SPEC };
    const decider = agentDecider(agent, policy as unknown as StoredPolicy, false);
    return decider.decide({ kind: 'Forge', mode: 'Sandbox', apis: [], domains: [], paths: [] }).effect;
  };

  it('what a tool requires follows the recorded level of category code_execution, as forging does', () => {
    assert.equal(decide(undefined), 'Deny');
    assert.equal(decide(RAISED), 'Allow');
  });

  it('a status of an agent that was deleted raises nothing', () => {
    assert.equal(decide({ ...RAISED, agentUid: 'another' }), 'Deny');
  });
});
