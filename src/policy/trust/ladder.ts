import { BUILTIN_LEVELS, type BuiltinLevel, DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';

const LOWEST: BuiltinLevel = 'sandboxed';
export const ELEVATED_RANK = BUILTIN_LEVELS.indexOf('elevated');

/** 0 for sandboxed to 3 for elevated; a custom level ranks with its base. Undefined for a level that the policy does not define. */
export function levelRank(level: string, policy: TrustPolicySpec): number | undefined {
  const base = policy.levels?.find(({ name }) => name === level)?.base ?? level;
  const rank = (BUILTIN_LEVELS as readonly string[]).indexOf(base);
  return rank < 0 ? undefined : rank;
}

/** A level that the policy does not define ranks lowest. */
export function rankOrLowest(level: string, policy: TrustPolicySpec): number {
  return levelRank(level, policy) ?? 0;
}

export function ceilingRank(policy: TrustPolicySpec): number {
  return rankOrLowest(policy.level?.ceiling ?? DEFAULT_LEVELS.ceiling, policy);
}

/** The initial level, of a tool category if it has its own. Never elevated. */
export function initialLevel(policy: TrustPolicySpec, category?: string): string {
  const rule = policy.strategy?.categories?.find((one) => one.category === category);
  const level = rule?.initial ?? policy.level?.initial ?? DEFAULT_LEVELS.initial;
  return rankOrLowest(level, policy) >= ELEVATED_RANK ? LOWEST : level;
}

/** The level above, within the ceiling; undefined at the top. */
export function levelAbove(level: string, policy: TrustPolicySpec): BuiltinLevel | undefined {
  const rank = rankOrLowest(level, policy) + 1;
  return rank > ceilingRank(policy) ? undefined : BUILTIN_LEVELS[rank];
}

/** The level below; undefined at the bottom. */
export function levelBelow(level: string, policy: TrustPolicySpec): BuiltinLevel | undefined {
  return BUILTIN_LEVELS[rankOrLowest(level, policy) - 1];
}

/** The lower of two levels; the first of two with the same rank. */
export function lowerOf(one: string, other: string, policy: TrustPolicySpec): string {
  return rankOrLowest(other, policy) < rankOrLowest(one, policy) ? other : one;
}
