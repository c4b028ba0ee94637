import { DEFAULT_LEVELS, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import type { ToolCategory } from '../types.ts';
import { decayRules } from './decay.ts';
import { effectiveLevels, isBound, type TrustBinding } from './effective.ts';
import { decayInput, evidenceMarks, evaluateTrust, nextLevel, tracksOf } from './evaluate.ts';
import { countsOf, type TaskEvidence, foldEvidence, qualityOf, type TaskRecord } from './evidence.ts';
import { initialLevel } from './ladder.ts';
import type { Requirement } from './requirements.ts';
import { type ScoreTerm, trustScore } from './score.ts';
import { needsTrust, rebound } from './trust-state.ts';

export interface TrustExplanation {
  readonly strategy: string;
  readonly level: string;
  readonly initial: string;
  readonly ceiling: string;
  /** The recorded level belongs to the current specs; otherwise the operator has not evaluated them yet. */
  readonly isCurrent: boolean;
  readonly since?: string;
  readonly reason?: string;
  readonly approvals: readonly { level: string; category?: string; approval: string; since: string }[];
  readonly tasks: {
    readonly ended: number;
    readonly completed: number;
    readonly rated: number;
    /** The mean rating; absent without one. */
    readonly quality?: number;
    readonly lastTaskAt?: string;
    /** Only later tasks count. */
    readonly countedFrom?: string;
    /** The tool categories that tasks used. Absent when no task used one. */
    readonly categories?: readonly CategoryTasks[];
  };
  readonly tracks: readonly TrackExplanation[];
  readonly lowering: readonly { rule: string; lowers: boolean; detail: string; at?: string }[];
  /** When time alone may change the level. */
  readonly nextEvaluationAt?: string;
}

/** The tasks that used one tool category. */
interface CategoryTasks {
  readonly category: string;
  readonly ended: number;
  readonly completed: number;
  readonly rated: number;
}

export interface TrackExplanation {
  readonly category?: string;
  readonly level: string;
  readonly score?: number;
  readonly terms?: readonly ScoreTerm[];
  /** Absent at the top, and with strategy Disabled. */
  readonly next?: {
    readonly level: string;
    readonly needsApproval: boolean;
    readonly requirements: readonly Requirement[];
  };
}

export interface ExplainInput {
  readonly policy: TrustPolicySpec;
  readonly binding: TrustBinding;
  readonly trust: TrustStatus | undefined;
  readonly records: readonly TaskRecord[];
  readonly now: Date;
  readonly createdAt: Date;
}

/** What an evaluation sees now: the level, what is missing for the next one, and what would lower it. Pure. */
export function explainTrust(input: ExplainInput): TrustExplanation {
  const { policy, binding, trust, records, now, createdAt } = input;
  const start = rebound(trust, binding, policy);
  const evidence = foldEvidence(records, evidenceMarks(start, createdAt));
  const levels = effectiveLevels(trust, binding, policy);
  const rules = needsTrust(policy) ? decayRules(decayInput({ policy, now, createdAt }, start, evidence)) : [];
  const { nextAt } = evaluateTrust({ policy, binding, trust, evidence, now, createdAt, approvalOf: () => undefined });
  return {
    strategy: policy.strategy?.type ?? 'Disabled',
    level: levels.level,
    initial: initialLevel(policy),
    ceiling: policy.level?.ceiling ?? DEFAULT_LEVELS.ceiling,
    isCurrent: trust === undefined || isBound(trust, binding),
    ...(start.since === undefined ? {} : { since: start.since }),
    ...(start.reason === undefined ? {} : { reason: start.reason }),
    approvals: start.approved ?? [],
    tasks: summaryOf(evidence, start),
    tracks: tracksOf(policy).map((category) => track({ input, start, evidence, category }, levels)),
    lowering: rules.map(({ rule, lowers, detail, dueAt }) => ({ rule, lowers, detail, ...atTime('at', dueAt) })),
    ...atTime('nextEvaluationAt', nextAt),
  };
}

interface Track {
  readonly input: ExplainInput;
  readonly start: TrustStatus;
  readonly evidence: TaskEvidence;
  readonly category: ToolCategory | undefined;
}

function track(
  { input, start, evidence, category }: Track,
  levels: ReturnType<typeof effectiveLevels>,
): TrackExplanation {
  const { policy } = input;
  const next = nextLevel({ ...input, evidence }, start, category);
  const score = policy.strategy?.type === 'Weighted' ? trustScore(countsOf(evidence, category), policy) : undefined;
  return {
    ...(category === undefined ? {} : { category }),
    level: (category === undefined ? undefined : levels.categories[category]) ?? levels.level,
    ...(score === undefined ? {} : { score: score.score, terms: score.terms }),
    ...(next === undefined
      ? {}
      : { next: { level: next.level, needsApproval: next.needsHuman, requirements: next.requirements } }),
  };
}

function summaryOf(
  { total, categories, lastTaskAt }: TaskEvidence,
  { loweredAt }: TrustStatus,
): TrustExplanation['tasks'] {
  const quality = qualityOf(total);
  return {
    ended: total.tasks,
    completed: total.completed,
    rated: total.ratings,
    ...(quality === undefined ? {} : { quality: Math.round(quality * 100) / 100 }),
    ...atTime('lastTaskAt', lastTaskAt),
    ...(loweredAt === undefined ? {} : { countedFrom: loweredAt }),
    ...(categories.size === 0 ? {} : { categories: categoriesIn(categories) }),
  };
}

function categoriesIn(categories: TaskEvidence['categories']): CategoryTasks[] {
  return TOOL_CATEGORIES.flatMap((category) => {
    const counts = categories.get(category);
    if (counts === undefined) return [];
    return [{ category, ended: counts.tasks, completed: counts.completed, rated: counts.ratings }];
  });
}

function atTime<Name extends string>(name: Name, time: number | undefined): { [name in Name]?: string } {
  return (time === undefined ? {} : { [name]: new Date(time).toISOString() }) as { [name in Name]?: string };
}
