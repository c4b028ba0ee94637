import type { BuiltinLevel } from '../../api/v1alpha1/actions.ts';
import { parseDuration } from '../../api/quantities.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { STRATEGY_DEFAULTS } from '../../api/v1alpha1/trust/strategy.ts';
import type { ToolCategory } from '../types.ts';
import { type TaskEvidence, type TaskCounts, countsOf, qualityOf } from './evidence.ts';
import { trustScore } from './score.ts';

/** One rule of a rise, with what it asks for and what there is. */
export interface Requirement {
  readonly rule: 'minTasks' | 'minRatings' | 'minQuality' | 'score' | 'activeFor' | 'cleanFor' | 'coolDown';
  readonly met: boolean;
  readonly required: string;
  readonly actual: string;
  /** When time alone meets it, in epoch milliseconds. */
  readonly dueAt?: number;
}

export interface RequirementInput {
  readonly policy: TrustPolicySpec;
  readonly evidence: TaskEvidence;
  readonly category: ToolCategory | undefined;
  readonly next: BuiltinLevel;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly createdAt: number;
  readonly loweredAt: number | undefined;
}

interface Thresholds {
  readonly minTasks?: number;
  readonly minQuality?: number;
  readonly activeFor?: string;
  readonly cleanFor?: string;
}

/** Everything that the strategy asks for before the agent has the next level. Empty for type Disabled, which no agent leaves. */
export function requirementsFor(input: RequirementInput): Requirement[] {
  const { policy, evidence, category } = input;
  const { type = 'Disabled', minRatings = STRATEGY_DEFAULTS.minRatings } = policy.strategy ?? {};
  if (type === 'Disabled') return [];
  const counts = countsOf(evidence, category);
  const thresholds = thresholdsOf(input);
  return [
    atLeast('minTasks', counts.completed, thresholds.minTasks ?? minTasksOf(policy), 'completed tasks'),
    atLeast('minRatings', counts.ratings, minRatings, 'rated tasks'),
    ...quality(counts, thresholds),
    ...(type === 'Weighted' ? [score(counts, input)] : []),
    ...duration('activeFor', thresholds.activeFor, input.createdAt, input.now),
    ...duration('cleanFor', thresholds.cleanFor, Math.max(counts.lastFailureAt ?? 0, input.createdAt), input.now),
    ...duration('coolDown', coolDownOf(policy), input.loweredAt, input.now),
  ];
}

function minTasksOf({ strategy }: TrustPolicySpec): number {
  return strategy?.minTasks ?? STRATEGY_DEFAULTS.minTasks;
}

function coolDownOf({ decay }: TrustPolicySpec): string {
  return decay?.coolDown ?? STRATEGY_DEFAULTS.coolDown;
}

function thresholdsOf({ policy: { strategy }, category, next }: RequirementInput): Thresholds {
  if (strategy?.type === 'PerCategory') return strategy.categories?.find((one) => one.category === category) ?? {};
  if (strategy?.type !== 'Milestone') return {};
  const { levels = [], ...common } = strategy.milestone ?? {};
  return { ...common, ...levels.find(({ level }) => level === next) };
}

function atLeast(rule: Requirement['rule'], actual: number, required: number, what: string): Requirement {
  return { rule, met: actual >= required, required: `${required} ${what}`, actual: String(actual) };
}

/** Without a rating the quality is unknown, and meets no requirement above 0. */
function quality(counts: TaskCounts, { minQuality }: Thresholds): Requirement[] {
  if (minQuality === undefined) return [];
  const actual = qualityOf(counts);
  return [
    {
      rule: 'minQuality',
      met: minQuality === 0 || (actual !== undefined && actual >= minQuality),
      required: `mean rating of ${minQuality}`,
      actual: actual === undefined ? 'no rating' : actual.toFixed(2),
    },
  ];
}

function score(counts: TaskCounts, { policy, next }: RequirementInput): Requirement {
  const { restricted, standard, elevated } = {
    ...STRATEGY_DEFAULTS.thresholds,
    ...policy.strategy?.weighted?.thresholds,
  };
  const percent: Readonly<Record<BuiltinLevel, number>> = { sandboxed: 0, restricted, standard, elevated };
  const required = percent[next] / 100;
  const { score: actual } = trustScore(counts, policy);
  return {
    rule: 'score',
    met: actual >= required,
    required: `score of ${required.toFixed(2)}`,
    actual: String(actual),
  };
}

function duration(
  rule: Requirement['rule'],
  text: string | undefined,
  since: number | undefined,
  now: number,
): Requirement[] {
  if (text === undefined || since === undefined) return [];
  const dueAt = since + parseDuration(text);
  const from = new Date(since).toISOString();
  return [{ rule, met: now >= dueAt, required: `${text} since ${from}`, actual: new Date(now).toISOString(), dueAt }];
}
