import { parseDuration } from '../../api/quantities.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { STRATEGY_DEFAULTS } from '../../api/v1alpha1/trust/strategy.ts';
import { type TaskEvidence, qualityOf } from './evidence.ts';

/** Tasks without which a failure rate says nothing. */
const MIN_RECENT_TASKS = 10;

export interface DecayInput {
  readonly policy: TrustPolicySpec;
  readonly evidence: TaskEvidence;
  /** Epoch milliseconds. */
  readonly now: number;
  /** The last task, or the later time from which idleness counts. */
  readonly activeAt: number;
  /** The last quality check, or the time from which the first one counts. */
  readonly checkedAt: number;
}

export interface DecayRule {
  readonly rule: 'idle' | 'maxErrorPercent' | 'reverifyEvery';
  /** The level is lowered now. */
  readonly lowers: boolean;
  readonly detail: string;
  /** When time alone may lower the level, in epoch milliseconds. */
  readonly dueAt?: number;
  /** A quality check is due, whatever its result. */
  readonly checks?: boolean;
  /** Lowers only a level above the initial one. */
  readonly onlyRaised?: boolean;
}

/** The rules that lower a level, in their order; the first one that does decides. Rules that the policy does not set are absent. */
export function decayRules(input: DecayInput): DecayRule[] {
  return [idle(input), failures(input), reverification(input)].filter((rule) => rule !== undefined);
}

function idle({ policy: { decay }, now, activeAt }: DecayInput): DecayRule | undefined {
  if (decay?.idle === undefined) return undefined;
  const dueAt = activeAt + parseDuration(decay.idle);
  const detail = `no task for ${decay.idle}, counted from ${new Date(activeAt).toISOString()}`;
  return { rule: 'idle', lowers: now >= dueAt, detail, dueAt };
}

function failures({ policy: { decay, strategy }, evidence: { recent } }: DecayInput): DecayRule | undefined {
  const isAutomatic = strategy !== undefined && strategy.type !== 'Disabled';
  // The API server fills in the default of a policy that has `decay`.
  if (!isAutomatic && decay === undefined) return undefined;
  const limit = decay?.maxErrorPercent ?? STRATEGY_DEFAULTS.maxErrorPercent;
  const { tasks, failed } = recent;
  const lowers = tasks >= MIN_RECENT_TASKS && failed * 100 > limit * tasks;
  const detail = `${failed} of the last ${tasks} tasks failed; more than ${limit} % of at least ${MIN_RECENT_TASKS} lowers the level`;
  return { rule: 'maxErrorPercent', lowers, detail };
}

/** A check that finds no rating confirms nothing: it takes a raised level, and leaves the initial one. */
function reverification(input: DecayInput): DecayRule | undefined {
  const { policy, evidence, now, checkedAt } = input;
  const { reverifyEvery, minQuality } = policy.decay ?? {};
  if (reverifyEvery === undefined || minQuality === undefined || minQuality === 0) return undefined;
  const dueAt = checkedAt + parseDuration(reverifyEvery);
  const checks = now >= dueAt;
  const quality = qualityOf(evidence.unchecked);
  const fails = quality === undefined || quality < minQuality;
  const found = quality === undefined ? 'no rating' : `a mean rating of ${quality.toFixed(2)}`;
  const detail = `${found} since ${new Date(checkedAt).toISOString()}; the check every ${reverifyEvery} requires ${minQuality}`;
  return { rule: 'reverifyEvery', lowers: checks && fails, detail, dueAt, checks, onlyRaised: quality === undefined };
}
