import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import { parseDecimalMicros, parseQuantityBytes } from '../api/quantities.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { AccountHolder } from '../ledger/ledger.ts';

type Quotas = NonNullable<AgentSpec['quotas']> & NonNullable<TrustPolicySpec['quotas']>;

/** The accounts a call of this agent is charged to: its own and its policy's. */
export function accountsOf(
  agent: { name: string; namespace: string; spec: AgentSpec },
  policy: { name: string; spec: TrustPolicySpec },
): [AccountHolder, AccountHolder] {
  return [
    { name: `agent/${agent.namespace}/${agent.name}`, quotas: limits(agent.spec.quotas), prefix: 'spec.quotas.' },
    {
      name: `policy/${agent.namespace}/${policy.name}`,
      quotas: limits(policy.spec.quotas),
      prefix: `TrustPolicy "${policy.name}" spec.quotas.`,
    },
  ];
}

function limits(quotas: Partial<Quotas> = {}): AccountHolder['quotas'] {
  const money = (value: string | undefined): number | undefined =>
    value === undefined ? undefined : parseDecimalMicros(value);
  const found = {
    tokensPerHour: quotas.tokensPerHour,
    tokensPerDay: quotas.tokensPerDay,
    costMicrosPerHour: money(quotas.costPerHour),
    costMicrosPerDay: money(quotas.costPerDay),
    costMicrosPerMonth: money(quotas.costPerMonth),
    toolCallsPerMinute: quotas.toolCallsPerMinute,
    networkBytesPerHour:
      quotas.networkBytesPerHour === undefined ? undefined : parseQuantityBytes(quotas.networkBytesPerHour),
  };
  return Object.fromEntries(Object.entries(found).filter(([, limit]) => limit !== undefined));
}
