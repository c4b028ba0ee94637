import type { BuiltinLevel } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { ToolCategory } from '../types.ts';
import { type DecayRule, decayRules } from './decay.ts';
import { type TrustBinding, grantedLevel, recordedLevel } from './effective.ts';
import type { TaskEvidence, EvidenceMarks } from './evidence.ts';
import { ELEVATED_RANK, initialLevel, levelAbove, levelBelow, rankOrLowest } from './ladder.ts';
import { type Requirement, requirementsFor } from './requirements.ts';
import { needsTrust, rebound, recordActivity, withApproval, withLevel } from './trust-state.ts';

export interface TrustTransition {
  readonly kind: 'Raised' | 'Lowered' | 'Approved' | 'Withdrawn';
  readonly category?: ToolCategory;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** A rise for which all requirements are met, and which an approver decides. */
export interface TrustRequest {
  readonly category?: ToolCategory;
  readonly from: string;
  readonly level: BuiltinLevel;
}

export interface TrustInput {
  readonly policy: TrustPolicySpec;
  readonly binding: TrustBinding;
  readonly trust: TrustStatus | undefined;
  /** Undefined while the records cannot be read: the level then changes by approvals and withdrawals only. */
  readonly evidence: TaskEvidence | undefined;
  readonly now: Date;
  readonly createdAt: Date;
  /** The name of an approval of this rise that was not applied yet. */
  readonly approvalOf: (request: TrustRequest) => string | undefined;
}

export interface TrustEvaluation {
  /** Undefined when there is nothing to record: the agent has the initial level. */
  readonly trust: TrustStatus | undefined;
  readonly transitions: readonly TrustTransition[];
  readonly requests: readonly TrustRequest[];
  /** When to evaluate again without a new record, in epoch milliseconds: now after a change, otherwise when time alone may change something. */
  readonly nextAt?: number;
}

/** One evaluation: at most one level up or down per track. What lowers a level goes before what raises it. Pure. */
export function evaluateTrust(input: TrustInput): TrustEvaluation {
  if (!needsTrust(input.policy)) return { trust: undefined, transitions: withdrawals(input), requests: [] };
  const start = rebound(input.trust, input.binding, input.policy);
  const rules = input.evidence === undefined ? [] : decayRules(decayInput(input, start, input.evidence));
  const lowering = rules.find(({ lowers }) => lowers);
  const decayed = lowering === undefined ? undefined : lowered(input, start, lowering);
  const step = decayed ?? { trust: start, transitions: [], requests: [], dueTimes: [] };
  const next = lowering === undefined ? raised(input, start) : step;
  const isChecked = rules.some(({ checks }) => checks === true);
  const active = recordActivity(next.trust, input.evidence?.lastTaskAt);
  const trust = isChecked ? { ...active, verifiedAt: input.now.toISOString() } : active;
  const dueTimes = [...rules.flatMap(({ dueAt }) => dueAt ?? []), ...next.dueTimes];
  const now = input.now.getTime();
  // Each evaluation moves a level by one, and a changed level has other due times.
  const times = next.transitions.length > 0 ? [now] : dueTimes.filter((time) => time > now);
  return {
    trust: hasContent(trust) ? trust : undefined,
    transitions: [...withdrawals(input), ...next.transitions],
    requests: next.requests,
    ...(times.length === 0 ? {} : { nextAt: Math.min(...times) }),
  };
}

/** Which records an evaluation of this status reads. */
export function evidenceMarks(trust: TrustStatus | undefined, createdAt: Date): EvidenceMarks {
  return {
    countFrom: trust?.loweredAt === undefined ? 0 : Date.parse(trust.loweredAt),
    checkedAt: trust?.verifiedAt === undefined ? createdAt.getTime() : Date.parse(trust.verifiedAt),
  };
}

/** The levels that change on their own: that of all requests, and those of the tool categories with a rule. */
export function tracksOf({ strategy }: TrustPolicySpec): (ToolCategory | undefined)[] {
  const categories = strategy?.type === 'PerCategory' ? (strategy.categories ?? []) : [];
  return [undefined, ...categories.map(({ category }) => category)];
}

/** What is still missing for the next level of a track; undefined when there is none. */
export function nextLevel(
  input: Pick<TrustInput, 'policy' | 'now' | 'createdAt'> & { evidence: TaskEvidence },
  trust: TrustStatus,
  category: ToolCategory | undefined,
): { level: BuiltinLevel; requirements: readonly Requirement[]; needsHuman: boolean } | undefined {
  const { policy, evidence } = input;
  const type = policy.strategy?.type ?? 'Disabled';
  // Per category only the categories rise: easy tasks of one category count for no other.
  if (type === 'Disabled' || (type === 'PerCategory' && category === undefined)) return undefined;
  const level = levelAbove(grantedLevel(trust, policy, category), policy);
  if (level === undefined) return undefined;
  const loweredAt = trust.loweredAt === undefined ? undefined : Date.parse(trust.loweredAt);
  const times = { now: input.now.getTime(), createdAt: input.createdAt.getTime(), loweredAt };
  const requirements = requirementsFor({ policy, evidence, category, next: level, ...times });
  return { level, requirements, needsHuman: needsHuman(level, policy) };
}

export function decayInput(
  { policy, now, createdAt }: Pick<TrustInput, 'policy' | 'now' | 'createdAt'>,
  trust: TrustStatus,
  evidence: TaskEvidence,
) {
  const times = [trust.lastTaskAt, trust.loweredAt, ...(trust.approved ?? []).map(({ since }) => since)];
  const known = times.flatMap((time) => (time === undefined ? [] : Date.parse(time)));
  const activeAt = Math.max(createdAt.getTime(), evidence.lastTaskAt ?? 0, ...known);
  return { policy, evidence, now: now.getTime(), activeAt, checkedAt: evidenceMarks(trust, createdAt).checkedAt };
}

/** Elevated always needs an approver, whatever the policy says. */
function needsHuman(level: BuiltinLevel, policy: TrustPolicySpec): boolean {
  const named: readonly string[] = policy.strategy?.requireHuman ?? [];
  return rankOrLowest(level, policy) >= ELEVATED_RANK || named.includes(level);
}

interface Step {
  trust: TrustStatus;
  transitions: readonly TrustTransition[];
  requests: readonly TrustRequest[];
  dueTimes: readonly number[];
}

function lowered({ policy, now }: TrustInput, start: TrustStatus, rule: DecayRule): Step {
  const at = now.toISOString();
  const transitions: TrustTransition[] = [];
  let trust = start;
  for (const category of tracksOf(policy)) {
    const from = grantedLevel(start, policy, category);
    const to = levelBelow(from, policy);
    const isSpared = rule.onlyRaised === true && !isRaised(from, policy, category);
    if (to === undefined || isSpared) continue;
    trust = withLevel(trust, { category, level: to, at, reason: rule.detail });
    transitions.push({ kind: 'Lowered', ...named(category), from, to, reason: rule.detail });
  }
  if (transitions.length > 0) trust = { ...trust, loweredAt: at };
  return { trust, transitions, requests: [], dueTimes: [] };
}

function raised(input: TrustInput, start: TrustStatus): Step {
  const { policy, now, evidence, approvalOf } = input;
  const at = now.toISOString();
  const step = {
    trust: start,
    transitions: [] as TrustTransition[],
    requests: [] as TrustRequest[],
    dueTimes: [] as number[],
  };
  for (const category of tracksOf(policy)) {
    const from = grantedLevel(start, policy, category);
    const above = levelAbove(from, policy);
    if (above === undefined) continue;
    const request: TrustRequest = { ...named(category), from, level: above };
    const approval = needsHuman(above, policy) ? approvalOf(request) : undefined;
    if (approval !== undefined) {
      step.trust = withApproval(step.trust, { category, level: above, approval, since: at });
      step.transitions.push({
        kind: 'Approved',
        ...named(category),
        from,
        to: above,
        reason: `Approval "${approval}"`,
      });
      continue;
    }
    const next = evidence === undefined ? undefined : nextLevel({ ...input, evidence }, start, category);
    if (next === undefined) continue;
    step.dueTimes.push(...next.requirements.flatMap(({ dueAt }) => dueAt ?? []));
    if (next.requirements.length === 0 || !next.requirements.every(({ met }) => met)) continue;
    if (next.needsHuman) {
      step.requests.push(request);
      continue;
    }
    const reason = next.requirements
      .map(({ required, actual }) => `${required}: ${actual}`)
      .join('; ')
      .slice(0, 512);
    step.trust = withLevel(step.trust, { category, level: above, at, reason });
    step.transitions.push({ kind: 'Raised', ...named(category), from, to: above, reason });
  }
  return step;
}

/** Approved levels that the versions of the specs no longer support. */
function withdrawals({ trust, binding, policy }: TrustInput): TrustTransition[] {
  if (trust === undefined || trust.approved === undefined) return [];
  const kept = needsTrust(policy) ? (rebound(trust, binding, policy).approved ?? []) : [];
  return trust.approved
    .filter((one) => !kept.includes(one))
    .map(({ category, level }) => ({
      kind: 'Withdrawn',
      ...named(category),
      from: level,
      to: recordedLevel(trust, category) ?? initialLevel(policy, category),
      reason: 'the spec of the Agent or of its TrustPolicy changed after the approval',
    }));
}

function isRaised(level: string, policy: TrustPolicySpec, category: ToolCategory | undefined): boolean {
  return rankOrLowest(level, policy) > rankOrLowest(initialLevel(policy, category), policy);
}

function named(category: ToolCategory | undefined): { category?: ToolCategory } {
  return category === undefined ? {} : { category };
}

/** More than the versions it belongs to. */
function hasContent({ level, approved, categories, loweredAt, verifiedAt, lastTaskAt }: TrustStatus): boolean {
  return (
    [level, loweredAt, verifiedAt, lastTaskAt].some(Boolean) || [approved, categories].some((list) => list?.length)
  );
}
