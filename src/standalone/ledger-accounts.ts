import { quotaLimits } from '../agent/quotas.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { AccountHolder } from '../ledger/ledger.ts';

/** The ledger accounts charged for a call of this agent: its own and that of its policy. */
export function accountsOf(
  agent: { name: string; namespace: string; spec: AgentSpec },
  policy: { name: string; spec: TrustPolicySpec },
): [AccountHolder, AccountHolder] {
  return [
    {
      name: `agent/${agent.namespace}/${agent.name}`,
      quotas: quotaLimits(agent.spec.quotas),
      prefix: 'spec.quotas.',
    },
    {
      name: `policy/${agent.namespace}/${policy.name}`,
      quotas: quotaLimits(policy.spec.quotas),
      prefix: `TrustPolicy "${policy.name}" spec.quotas.`,
    },
  ];
}
