import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { ObservedSharing } from '../sharing/sharing.ts';
import { agentDecider } from '../trust/agent-decider.ts';
import type { StoredTool } from './stored-tool.ts';

/** Rules that say nothing about what a tool requires: the agent is suspended, or forges nothing new. */
const UNRELATED = /^(suspend|tainted|forge\.enabled)/;

/** Why the limits of agent, policy and level no longer permit what the tool requires. Undefined without a valid policy: nothing runs then. */
export function policyDenial(
  { facts: { mode, requires } }: StoredTool,
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
): string | undefined {
  if (policy === undefined) return undefined;
  const { effect, rule, reason } = agentDecider(agent, policy, false).decide({ kind: 'Forge', mode, ...requires });
  return effect === 'Deny' && !UNRELATED.test(rule) ? reason : undefined;
}

/** Why the policy does not permit to ask for tier Shared. */
export function promotionDenial(
  { facts: { tool } }: StoredTool,
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
): string | undefined {
  const { name } = agent.spec.trustPolicyRef;
  if (policy === undefined) return `TrustPolicy "${name}" does not exist or is invalid; create or correct it`;
  const { effect, reason } = agentDecider(agent, policy, false).decide({ kind: 'Promote', tool, tier: 'Shared' });
  return effect === 'Deny' ? reason : undefined;
}

export function sharingRules(policy: StoredPolicy | undefined): ObservedSharing['rules'] {
  const { minAgents, coolDownMs } = promotionRules(policy?.spec ?? {});
  return { minAgents, coolDownMs };
}
