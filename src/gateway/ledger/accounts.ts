import { quotaLimits } from '../../agent/quotas.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../../lib/errors.ts';
import type { SharedAccountHolder } from '../../nats/ledger/ledger.ts';
import { agentAccount, initialSpendFrom, policyAccount, type SpendWindow } from '../../nats/ledger/spend-summary.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';

/**
 * The accounts that calls of this agent are charged to: its own, its policy's, and those of the agents that started it, so that a tree
 * of agents shares the budget of its root. Throws TEMPER_POLICY_DENIED without a policy.
 */
export function accountsOf(
  state: AgentState,
  directory: Pick<AgentDirectory, 'policy'>,
): [SharedAccountHolder, ...SharedAccountHolder[]] {
  const [own, policy] = accountsOfOne(state, directory, 'spec.quotas.');
  const all = [policy];
  for (const ancestor of state.ancestors) {
    const prefix = `spec.quotas of its parent "${ancestor.agent.metadata.name}".`;
    for (const holder of accountsOfOne(ancestor, directory, prefix)) {
      if (!all.some(({ name }) => name === holder.name)) all.push(holder);
    }
  }
  return [own, ...all];
}

function accountsOfOne(
  { uid, agent, policy }: AgentState,
  directory: Pick<AgentDirectory, 'policy'>,
  prefix: string,
): [SharedAccountHolder, SharedAccountHolder] {
  if (policy === undefined) {
    const { name } = agent.spec.trustPolicyRef;
    throw new TemperError('TEMPER_POLICY_DENIED', `TrustPolicy "${name}" does not exist, so spending is denied`);
  }
  const own = { name: agentAccount(uid), quotas: quotaLimits(agent.spec.quotas), prefix };
  return [own, policyHolder(policy, directory)];
}

/** The account of all agents under a policy. Missing counters start with the spend in the policy's status at that moment. */
export function policyHolder(policy: TrustPolicy, directory: Pick<AgentDirectory, 'policy'>): SharedAccountHolder {
  const { uid, name, namespace = '' } = policy.metadata;
  if (uid === undefined) throw new TemperError('TEMPER_POLICY_DENIED', `TrustPolicy "${name}" has no uid`);
  return {
    name: policyAccount(uid),
    quotas: quotaLimits(policy.spec.quotas),
    prefix: `TrustPolicy "${name}" spec.quotas.`,
    initialSpend: () => initialSpendFrom(spendIn(directory.policy(namespace, name) ?? policy)),
  };
}

/** The spend the operator last wrote into the policy's status. */
function spendIn({ status }: TrustPolicy): readonly SpendWindow[] {
  return status?.spend ?? [];
}
