import { BUILTIN_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { CategoryLevels, ToolCategory } from '../types.ts';
import { ELEVATED_RANK, ceilingRank, initialLevel, levelBelow, levelRank, lowerOf, rankOrLowest } from './ladder.ts';

/** The versions of the Agent and of the TrustPolicy that a level belongs to. */
export type TrustBinding = Pick<TrustStatus, 'agentUid' | 'agentGeneration' | 'policyUid' | 'policyGeneration'>;

/** The levels of one agent. A category without one has `level`. */
export interface EffectiveLevels {
  readonly level: string;
  readonly categories: CategoryLevels;
}

interface AgentVersion {
  metadata: { uid?: string; generation?: number };
}

/** The versions that exist now. Undefined members never equal a recorded one. */
export function bindingOf(agent: AgentVersion, policy: AgentVersion): TrustBinding {
  return {
    agentUid: agent.metadata.uid ?? '',
    agentGeneration: agent.metadata.generation ?? -1,
    policyUid: policy.metadata.uid ?? '',
    policyGeneration: policy.metadata.generation ?? -1,
  };
}

export function isBound(trust: TrustStatus, binding: TrustBinding): boolean {
  return (
    trust.agentUid === binding.agentUid &&
    trust.agentGeneration === binding.agentGeneration &&
    trust.policyUid === binding.policyUid &&
    trust.policyGeneration === binding.policyGeneration
  );
}

/**
 * The levels to decide with: never above the ceiling, and elevated only by an approval. Without a status, or with one of other versions,
 * the initial level, or a lower one that is recorded.
 */
export function effectiveLevels(
  trust: TrustStatus | undefined,
  binding: TrustBinding,
  policy: TrustPolicySpec,
): EffectiveLevels {
  const categories = (policy.strategy?.type === 'PerCategory' ? policy.strategy.categories : undefined) ?? [];
  const own = trust?.agentUid === binding.agentUid ? trust : undefined;
  const levelOf = (category?: ToolCategory): string =>
    own !== undefined && isBound(own, binding)
      ? capped(grantedLevel(own, policy, category), policy)
      : capped(unboundLevel(own, policy, category), policy);
  return {
    level: levelOf(),
    categories: Object.fromEntries(categories.map(({ category }) => [category, levelOf(category)])),
  };
}

/** The higher of what the agent earned and what an approver granted it. For a status of the current versions. */
export function grantedLevel(trust: TrustStatus, policy: TrustPolicySpec, category?: ToolCategory): string {
  const earned = earnedLevel(trust, policy, category);
  const approved = trust.approved?.find((one) => one.category === category)?.level;
  const isHigher = approved !== undefined && rankOrLowest(approved, policy) > rankOrLowest(earned, policy);
  return isHigher ? approved : earned;
}

/** Without approvals, so always below elevated. */
function earnedLevel(trust: TrustStatus | undefined, policy: TrustPolicySpec, category?: ToolCategory): string {
  const initial = initialLevel(policy, category);
  const recorded = recordedLevel(trust, category);
  if (recorded === undefined) return initial;
  const known = levelRank(recorded, policy) === undefined ? 'sandboxed' : recorded;
  return rankOrLowest(known, policy) >= ELEVATED_RANK ? (levelBelow(known, policy) ?? 'sandboxed') : known;
}

export function recordedLevel(trust: TrustStatus | undefined, category?: ToolCategory): string | undefined {
  if (category === undefined) return trust?.level;
  return trust?.categories?.find((one) => one.category === category)?.level;
}

function unboundLevel(trust: TrustStatus | undefined, policy: TrustPolicySpec, category?: ToolCategory): string {
  return lowerOf(initialLevel(policy, category), earnedLevel(trust, policy, category), policy);
}

function capped(level: string, policy: TrustPolicySpec): string {
  const ceiling = ceilingRank(policy);
  return rankOrLowest(level, policy) <= ceiling ? level : (BUILTIN_LEVELS[ceiling] ?? 'sandboxed');
}

/** The lower one of two levels, for each category too. */
export function lowerLevels(one: EffectiveLevels, other: EffectiveLevels, policy: TrustPolicySpec): EffectiveLevels {
  const categories = Object.keys({ ...one.categories, ...other.categories }) as ToolCategory[];
  return {
    level: lowerOf(one.level, other.level, policy),
    categories: Object.fromEntries(
      categories.map((category) => [
        category,
        lowerOf(one.categories[category] ?? one.level, other.categories[category] ?? other.level, policy),
      ]),
    ),
  };
}
