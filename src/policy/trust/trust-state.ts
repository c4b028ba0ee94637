import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { ApprovedLevel, CategoryTrust, TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { ToolCategory } from '../types.ts';
import { type TrustBinding, isBound } from './effective.ts';
import { initialLevel, levelRank, rankOrLowest } from './ladder.ts';

/** The recorded time of the last task changes when it is off by this, so that an active agent costs one status write per day. */
const ACTIVITY_STEP_MS = 24 * 3_600_000;

/** Can the level of an agent under this policy differ from the initial one? */
export function needsTrust({ strategy, decay }: TrustPolicySpec): boolean {
  const isAutomatic = strategy !== undefined && strategy.type !== 'Disabled';
  return isAutomatic || decay !== undefined;
}

/** The status for these versions: without approvals of other ones, and without levels that no longer differ from the initial one. */
export function rebound(trust: TrustStatus | undefined, binding: TrustBinding, policy: TrustPolicySpec): TrustStatus {
  if (trust === undefined || trust.agentUid !== binding.agentUid) return { ...binding };
  const { approved = [], categories = [], ...recorded } = trust;
  const { level: _level, since: _since, reason: _reason, ...withoutLevel } = recorded;
  const rules = (policy.strategy?.type === 'PerCategory' ? policy.strategy.categories : undefined) ?? [];
  const tracked = new Set(rules.map(({ category }) => category));
  const kept = categories.filter(
    ({ category, level }) => tracked.has(category) && keepsLevel(level, trust, policy, category),
  );
  const granted = isBound(trust, binding) ? approved : [];
  return {
    ...(keepsLevel(trust.level, trust, policy, undefined) ? recorded : withoutLevel),
    ...binding,
    ...(granted.length === 0 ? {} : { approved: granted }),
    ...(kept.length === 0 ? {} : { categories: kept }),
  };
}

/** A raised level ends with the strategy that raised it; a lowered one stays until the agent rises again. */
function keepsLevel(
  level: string | undefined,
  { loweredAt }: TrustStatus,
  policy: TrustPolicySpec,
  category: ToolCategory | undefined,
): boolean {
  if (level === undefined || levelRank(level, policy) === undefined) return level !== undefined;
  const difference = rankOrLowest(level, policy) - rankOrLowest(initialLevel(policy, category), policy);
  if (difference < 0) return loweredAt !== undefined;
  const isAutomatic = policy.strategy !== undefined && policy.strategy.type !== 'Disabled';
  return difference > 0 && isAutomatic;
}

export interface LevelChange {
  readonly category: ToolCategory | undefined;
  readonly level: string;
  readonly at: string;
  readonly reason: string;
}

/** Records an earned or lowered level, which takes the place of an approved one. */
export function withLevel(trust: TrustStatus, { category, level, at, reason }: LevelChange): TrustStatus {
  const { approved = [], categories = [], ...rest } = trust;
  const granted = approved.filter((one) => one.category !== category);
  const others = categories.filter((one) => one.category !== category);
  const entry = { level, since: at, reason: reason.slice(0, 512) };
  const list: CategoryTrust[] = category === undefined ? categories : [...others, { category, ...entry }];
  return {
    ...rest,
    ...(category === undefined ? entry : {}),
    ...(granted.length === 0 ? {} : { approved: granted }),
    ...(list.length === 0 ? {} : { categories: list }),
  };
}

export function withApproval(
  trust: TrustStatus,
  { category, ...granted }: Omit<ApprovedLevel, 'category'> & { category: ToolCategory | undefined },
): TrustStatus {
  const others = (trust.approved ?? []).filter((one) => one.category !== category);
  return { ...trust, approved: [...others, { ...granted, ...(category === undefined ? {} : { category }) }] };
}

export function recordActivity(trust: TrustStatus, lastTaskAt: number | undefined): TrustStatus {
  if (lastTaskAt === undefined) return trust;
  const known = trust.lastTaskAt === undefined ? Number.NEGATIVE_INFINITY : Date.parse(trust.lastTaskAt);
  return lastTaskAt - known < ACTIVITY_STEP_MS ? trust : { ...trust, lastTaskAt: new Date(lastTaskAt).toISOString() };
}
