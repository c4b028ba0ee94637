import { parseDuration } from '../../api/quantities.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { ExaminationRules } from '../examination/verdict.ts';
import type { RegisteredTool, ToolStatistics } from '../types.ts';
import { MAX_STORED_INPUTS } from '../use/use-record.ts';

/** The requirements of a policy for the promotion of a tool. */
export interface PromotionRules {
  minSuccessfulUses: number;
  /** The success rate must be above this. */
  minSuccessPercent: number;
  /** Required number of successfully re-run inputs that come from different root messages. */
  minDistinctInputs: number;
  /** Minimum confidence of the creation judge and of the panel. */
  minJudgeConfidencePercent: number;
  /** `Wilson`: the lower bound of the 95 % interval is compared with minSuccessPercent instead of the rate. */
  confidenceBound: 'Rate' | 'Wilson';
  coolDownMs: number;
  requireHuman: boolean;
  /** The limits for the examination between the re-runs and the panel. */
  examination: ExaminationRules;
  /** Whether answers that only a pod reported may carry a promotion to tier Agent. They never carry one to tier Shared. */
  reportedEvidence: 'Deny' | 'Allow';
  /** Number of agents that must have the tool at tier Agent before an approval to share it is requested. */
  minAgents: number;
  /** A tool of tier Agent or Shared is demoted when more than this share of its last 20 uses fails. */
  maxErrorPercent: number;
  /** What a promotion does when the agent has its maximum of tools. */
  whenFull: 'Refuse' | 'DeactivateLeastUseful';
}

/** The rules of a policy, with defaults for absent fields. */
export function promotionRules(
  spec: Pick<TrustPolicySpec, 'promotion' | 'decay' | 'forge' | 'strategy'>,
): PromotionRules {
  const { toAgent = {}, toShared = {} } = spec.promotion ?? {};
  return {
    ...useRequirements(toAgent),
    minJudgeConfidencePercent: toAgent.minJudgeConfidencePercent ?? 80,
    coolDownMs: parseDuration(toAgent.coolDown ?? '24h'),
    requireHuman: toAgent.requireHuman ?? false,
    examination: examinationRules(toAgent.examination),
    minAgents: toShared.minAgents ?? 1,
    maxErrorPercent: spec.decay?.maxErrorPercent ?? 15,
    whenFull: spec.forge?.limits?.whenFull ?? (isAutomatic(spec) ? 'DeactivateLeastUseful' : 'Refuse'),
  };
}

/** Without a strategy, users decide what an agent may do, and so what it loses. */
function isAutomatic({ strategy }: Pick<TrustPolicySpec, 'strategy'>): boolean {
  return strategy?.type !== undefined && strategy.type !== 'Disabled';
}

function examinationRules({
  maxDisagreements = 0,
  maxFailedInputsPercent = 90,
}: Partial<ExaminationRules> = {}): ExaminationRules {
  return { maxDisagreements, maxFailedInputsPercent };
}

type ToAgent = NonNullable<NonNullable<TrustPolicySpec['promotion']>['toAgent']>;

function useRequirements(toAgent: ToAgent) {
  return {
    minSuccessfulUses: toAgent.minSuccessfulUses ?? 5,
    minSuccessPercent: toAgent.minSuccessPercent ?? 80,
    minDistinctInputs: toAgent.minDistinctInputs ?? 3,
    confidenceBound: toAgent.confidenceBound ?? 'Rate',
    reportedEvidence: toAgent.reportedEvidence ?? 'Deny',
  };
}

/** Figures of the verifier. Only these decide a promotion; uses reported by a pod merely start the verification. */
export interface RerunFigures {
  tests: number;
  failedTests: number;
  reruns: number;
  successes: number;
  /** Successful re-runs whose inputs came with different root messages. */
  distinctInputs: number;
  /** Successful re-runs with recorded answers, by the evidence of the answers. */
  observedAnswers: number;
  reportedAnswers: number;
}

/** Requirements the use record does not meet yet. Verification is worth its cost only when the list is empty. */
export function useGaps(tool: RegisteredTool, uses: ToolStatistics, rules: PromotionRules): string[] {
  const gap = confidenceGap('the judge', Math.min(...tool.verdicts.map(({ confidence }) => confidence)), rules);
  return [...statisticsGaps(uses, rules), ...(gap === undefined ? [] : [gap])];
}

/** The same without the requirements of the tool itself. */
export function statisticsGaps(uses: ToolStatistics, rules: PromotionRules): string[] {
  return [
    atLeast('successful uses', uses.successes, rules.minSuccessfulUses),
    successGap(uses.successes, uses.totalUses, rules),
    atLeast('distinct inputs', uses.distinctInputs, rules.minDistinctInputs),
    atLeast('root messages', uses.rootMessages, rules.minDistinctInputs),
  ].filter((gap) => gap !== undefined);
}

/** Requirements the verifier's figures do not meet. */
export function verificationGaps(figures: RerunFigures, rules: PromotionRules): string[] {
  const needed = Math.min(rules.minSuccessfulUses, MAX_STORED_INPUTS);
  return [
    figures.failedTests === 0 ? undefined : `${figures.failedTests} of ${figures.tests} tests failed in a fresh runner`,
    successGap(figures.successes, figures.reruns, rules),
    atLeast('successful re-runs', figures.successes, needed),
    atLeast('re-run inputs of different root messages', figures.distinctInputs, rules.minDistinctInputs),
  ].filter((gap) => gap !== undefined);
}

/** True when the tool failed the verification; false when there are only too few re-runs. */
export function failedVerification(figures: RerunFigures, rules: PromotionRules): boolean {
  return figures.failedTests > 0 || successGap(figures.successes, figures.reruns, rules) !== undefined;
}

export function confidenceGap(reviewer: string, confidence: number, rules: PromotionRules): string | undefined {
  const percent = confidence * 100;
  if (percent >= rules.minJudgeConfidencePercent) return undefined;
  return `confidence of ${reviewer} is ${round(percent)} %, ${rules.minJudgeConfidencePercent} % needed`;
}

/** The reason to demote a tool of tier Agent or Shared because of its use record; undefined below 10 recent uses. */
export function failureReason(
  { recent }: Pick<ToolStatistics, 'recent'>,
  rules: Pick<PromotionRules, 'maxErrorPercent'>,
): string | undefined {
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
