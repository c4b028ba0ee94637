import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import type { CategoryLevels } from '../policy/types.ts';

/** An agent from the informer cache, with its policy and derived state. */
export interface AgentState {
  /** `metadata.uid`. */
  uid: string;
  agent: Agent;
  /** Undefined while the policy does not exist: nothing is allowed then. */
  policy: TrustPolicy | undefined;
  /** The effective level. */
  level: string;
  /** The effective levels of tool categories that have their own. */
  categoryLevels: CategoryLevels;
  /** `spec.suspend` of the agent or of an agent that started it, or the kill switch of a policy of these. */
  suspended: boolean;
  /** The agents that started it, its parent first. Empty for an agent without a parent. */
  ancestors: readonly AgentState[];
  /** UID of the bound pod. */
  podUid: string | undefined;
}
