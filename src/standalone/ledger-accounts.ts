import { quotaLimits } from '../agent/quotas.ts';
import type { EngineAgent } from '../engine/ports.ts';
import type { AccountHolder } from '../ledger/ledger.ts';

/**
 * The ledger accounts charged for a call of this agent: its own and that of its policy, and those of the agents that started it, its parent
 * first, so that a tree of agents shares the budget of its root.
 */
export function accountsOf(
  agent: EngineAgent,
  ancestors: readonly EngineAgent[] = [],
): [AccountHolder, ...AccountHolder[]] {
  const [own, ...all] = accountsOfOne(agent, 'spec.quotas.');
  for (const ancestor of ancestors) {
    for (const holder of accountsOfOne(ancestor, `spec.quotas of its parent "${ancestor.name}".`))
      if (!all.some(({ name }) => name === holder.name)) all.push(holder);
  }
  return [own, ...all];
}

function accountsOfOne({ name, namespace, spec, policy }: EngineAgent, prefix: string): [AccountHolder, AccountHolder] {
  return [
    { name: `agent/${namespace}/${name}`, quotas: quotaLimits(spec.quotas), prefix },
    {
      name: `policy/${namespace}/${policy.name}`,
      quotas: quotaLimits(policy.spec.quotas),
      prefix: `TrustPolicy "${policy.name}" spec.quotas.`,
    },
  ];
}
