import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { STRATEGY_DEFAULTS } from '../../api/v1alpha1/trust/strategy.ts';
import { type TaskCounts, qualityOf } from './evidence.ts';

export interface ScoreTerm {
  readonly name: 'quality' | 'completion' | 'reliability' | 'experience';
  /** 0 to 1; 0 without data. */
  readonly value: number;
  /** Percent. */
  readonly weight: number;
  readonly source: string;
}

export interface Score {
  /** 0 to 1, with four decimals. */
  readonly score: number;
  readonly terms: readonly ScoreTerm[];
}

/** Completed tasks with which the term `experience` is full. */
const FULL_EXPERIENCE = 100;

/** A term without data is 0: what is unknown never raises a score. The difficulty of a task has no observed source, and no term. */
export function trustScore(counts: TaskCounts, policy: TrustPolicySpec): Score {
  const weights = { ...STRATEGY_DEFAULTS.weights, ...policy.strategy?.weighted?.weights };
  const { tasks, completed, deliveries, ratings } = counts;
  const terms: ScoreTerm[] = [
    {
      name: 'quality',
      value: (qualityOf(counts) ?? 0) / 10,
      weight: weights.quality,
      source: `${ratings} tasks rated by users`,
    },
    {
      name: 'completion',
      value: share(completed, tasks),
      weight: weights.completion,
      source: `${completed} of ${tasks} tasks completed`,
    },
    {
      name: 'reliability',
      value: share(completed, deliveries),
      weight: weights.reliability,
      source: `${completed} tasks completed in ${deliveries} deliveries`,
    },
    {
      name: 'experience',
      value: Math.min(completed / FULL_EXPERIENCE, 1),
      weight: weights.experience,
      source: `${completed} of ${FULL_EXPERIENCE} completed tasks`,
    },
  ];
  const sum = terms.reduce((total, { value, weight }) => total + value * weight, 0) / 100;
  return { score: Math.round(Math.min(1, Math.max(0, sum)) * 10_000) / 10_000, terms };
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(part / whole, 1);
}
