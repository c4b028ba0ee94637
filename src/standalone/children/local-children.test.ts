import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { API_VERSION } from '../../api/names.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { anAgentSpec } from '../../policy/policy.testing.ts';
import type { Member } from '../team/member.ts';
import { admittedSpec } from './local-children.ts';

function admitted(child: AgentSpec, policy: TrustPolicySpec): AgentSpec {
  const parent = {
    name: 'lead',
    namespace: 'default',
    agent: { metadata: { name: 'lead' }, spec: anAgentSpec() },
    policy: { apiVersion: API_VERSION, kind: 'TrustPolicy', metadata: { name: 'standard' }, spec: policy },
  } as unknown as Member;
  return admittedSpec({ spec: child }, parent, { members: () => [parent], find: () => undefined });
}

describe('the admission of a child in one process', () => {
  it('a child that is looser than the policy is refused with the field, where its parent leaves the field open', () => {
    const policy: TrustPolicySpec = { constraints: { network: 'None' } };
    assert.throws(() => admitted(anAgentSpec({ autonomy: 'Full', constraints: { network: 'Open' } }), policy), {
      code: 'TEMPER_CHILD_REFUSED',
      message: /autonomy "Full" exceeds policy "standard".*constraints\.network "Open" exceeds policy "standard"/,
    });
    const within = { network: 'None' as const };
    assert.deepEqual(admitted(anAgentSpec({ constraints: within }), policy).constraints, within);
  });

  it('a child beyond the agents that the policy allows is refused, and one within them is not', () => {
    const child = anAgentSpec();
    assert.throws(() => admitted(child, { quotas: { agents: 1 } }), {
      code: 'TEMPER_CHILD_REFUSED',
      message: /^1 agents exist, and spec\.quotas\.agents of TrustPolicy "standard" allows 1;/,
    });
    assert.equal(admitted(child, { quotas: { agents: 2 } }).prompt.system, child.prompt.system);
  });
});
