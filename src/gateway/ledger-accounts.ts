import { quotaLimits } from '../agent/quotas.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import { TemperError } from '../lib/errors.ts';
import type { SharedHolder } from '../nats/ledger.ts';
import { agentAccount, openingOf, policyAccount, type SpendWindow } from '../nats/ledger-spend.ts';
import type { AgentState, Directory } from './deps.ts';

/** The accounts a call of this agent is charged to: its own and its policy's. Throws TEMPER_POLICY_DENIED without a policy. */
export function accountsOf(
  { uid, agent, policy }: AgentState,
  directory: Pick<Directory, 'policy'>,
): [SharedHolder, SharedHolder] {
  const policyUid = policy?.metadata.uid;
  if (policy === undefined || policyUid === undefined) {
    const { name: missing } = agent.spec.trustPolicyRef;
    throw new TemperError('TEMPER_POLICY_DENIED', `TrustPolicy "${missing}" does not exist, so nothing may be spent`);
  }
  const { name, namespace = '' } = policy.metadata;
  return [
    { name: agentAccount(uid), quotas: quotaLimits(agent.spec.quotas), prefix: 'spec.quotas.' },
    {
      name: policyAccount(policyUid),
      quotas: quotaLimits(policy.spec.quotas),
      prefix: `TrustPolicy "${name}" spec.quotas.`,
      opening: () => openingOf(spendIn(directory.policy(namespace, name) ?? policy)),
    },
  ];
}

/** What the operator last wrote down of the policy's spend. */
function spendIn({ status }: TrustPolicy): readonly SpendWindow[] {
  const spend = (status as { spend?: readonly SpendWindow[] } | undefined)?.spend;
  return spend ?? [];
}
