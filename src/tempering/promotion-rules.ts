import { parseDuration } from '../api/quantities.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { RegisteredTool, ToolStatistics } from './types.ts';
import { KEPT_INPUTS } from './use-record.ts';

/** What a policy asks of a tool before it may rise. */
export interface PromotionRules {
  minSuccessfulUses: number;
  /** The rate must be above this. */
  minSuccessPercent: number;
  /** Re-run inputs that came with as many different root messages. */
  minDistinctInputs: number;
  /** Of the creation judge and of the panel; the confidence must be this or more. */
  minJudgeConfidencePercent: number;
  /** `Wilson`: the lower end of the 95 % interval is held against minSuccessPercent in place of the rate. */
  confidenceBound: 'Rate' | 'Wilson';
  coolDownMilliseconds: number;
  requireHuman: boolean;
  /** Agents that must have used it before a person is asked to share it. */
  minAgents: number;
  /** Above this share of its last 20 uses a tool of tier Agent or Shared is taken out. */
  maxErrorPercent: number;
}

/** The rules of a policy, with the defaults where it says nothing. */
export function promotionRules(spec: Pick<TrustPolicySpec, 'promotion' | 'decay'>): PromotionRules {
  const { toAgent = {}, toShared = {} } = spec.promotion ?? {};
  return {
    minSuccessfulUses: toAgent.minSuccessfulUses ?? 5,
    minSuccessPercent: toAgent.minSuccessPercent ?? 80,
    minDistinctInputs: toAgent.minDistinctInputs ?? 3,
    minJudgeConfidencePercent: toAgent.minJudgeConfidencePercent ?? 80,
    confidenceBound: toAgent.confidenceBound ?? 'Rate',
    coolDownMilliseconds: parseDuration(toAgent.coolDown ?? '24h'),
    requireHuman: toAgent.requireHuman ?? false,
    minAgents: toShared.minAgents ?? 1,
    maxErrorPercent: spec.decay?.maxErrorPercent ?? 15,
  };
}

/** What the verifier saw. Only this decides; what a pod claimed merely opened the way. */
export interface RerunFigures {
  tests: number;
  failedTests: number;
  reruns: number;
  successes: number;
  /** Successful re-runs whose inputs came with different root messages. */
  distinctInputs: number;
}

/** What is missing before verification is worth its cost. Empty opens the way. */
export function openingGaps(tool: RegisteredTool, uses: ToolStatistics, rules: PromotionRules): string[] {
  return [
    atLeast('successful uses', uses.successes, rules.minSuccessfulUses),
    successGap(uses.successes, uses.totalUses, rules),
    atLeast('distinct inputs', uses.distinctInputs, rules.minDistinctInputs),
    atLeast('root messages', uses.rootMessages, rules.minDistinctInputs),
    confidenceGap('the judge', Math.min(...tool.verdicts.map(({ confidence }) => confidence)), rules),
  ].filter((gap) => gap !== undefined);
}

/** What is missing by the verifier's own figures. */
export function verificationGaps(figures: RerunFigures, rules: PromotionRules): string[] {
  const needed = Math.min(rules.minSuccessfulUses, KEPT_INPUTS);
  return [
    figures.failedTests === 0 ? undefined : `${figures.failedTests} of ${figures.tests} tests failed in a fresh runner`,
    successGap(figures.successes, figures.reruns, rules),
    atLeast('successful re-runs', figures.successes, needed),
    atLeast('re-run inputs of different root messages', figures.distinctInputs, rules.minDistinctInputs),
  ].filter((gap) => gap !== undefined);
}

/** Did the tool itself fail the verification, or is there only too little of it? */
export function isFailure(figures: RerunFigures, rules: PromotionRules): boolean {
  return figures.failedTests > 0 || successGap(figures.successes, figures.reruns, rules) !== undefined;
}

export function confidenceGap(who: string, confidence: number, rules: PromotionRules): string | undefined {
  const percent = confidence * 100;
  if (percent >= rules.minJudgeConfidencePercent) return undefined;
  return `confidence of ${who} is ${round(percent)} %, ${rules.minJudgeConfidencePercent} % needed`;
}

/** Why the record of a tool of tier Agent or Shared takes it out; nothing is said before 10 uses. */
export function failureReason({ recent }: ToolStatistics, rules: PromotionRules): string | undefined {
  if (recent.uses < 10) return undefined;
  const percent = (recent.failures / recent.uses) * 100;
  if (percent <= rules.maxErrorPercent) return undefined;
  return `${recent.failures} of its last ${recent.uses} uses failed, ${rules.maxErrorPercent} % are allowed`;
}

function successGap(successes: number, total: number, rules: PromotionRules): string | undefined {
  if (total === 0) return undefined;
  const wilson = rules.confidenceBound === 'Wilson';
  const percent = (wilson ? wilsonLowerBound(successes, total) : successes / total) * 100;
  if (percent > rules.minSuccessPercent) return undefined;
  const what = wilson ? 'the Wilson lower bound of the success rate' : 'the success rate';
  return `${what} is ${round(percent)} % (${successes} of ${total}), more than ${rules.minSuccessPercent} % needed`;
}

/** Lower end of the 95 % Wilson score interval: 5 of 5 is 0.566, 16 of 16 is 0.806. */
function wilsonLowerBound(successes: number, total: number): number {
  if (total === 0) return 0;
  const z = 1.959963984540054;
  const rate = successes / total;
  const spread = z * Math.sqrt((rate * (1 - rate)) / total + (z * z) / (4 * total * total));
  return (rate + (z * z) / (2 * total) - spread) / (1 + (z * z) / total);
}

function atLeast(what: string, have: number, needed: number): string | undefined {
  return have >= needed ? undefined : `${have} of ${needed} ${what}`;
}

function round(percent: number): number {
  return Math.round(percent * 10) / 10;
}
