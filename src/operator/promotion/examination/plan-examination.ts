import { digestOf } from '../../../lib/canonical.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { MAX_ROUNDS } from '../../../gateway-api/verification/verification-limits.ts';
import { questionsOf } from '../../../tempering/examination/questions.ts';
import type { ExaminationReport } from '../../../tempering/examination/types.ts';
import { examinationFigures, examinationVerdict } from '../../../tempering/examination/verdict.ts';
import { planAfterExamination } from '../../../tempering/promotion/promotion-plan.ts';
import type { ObservedIn } from '../observed.ts';
import { candidate, type ClusterPromotionStep, rejected, repetitionOf, tryAgain } from '../steps.ts';

/** The next round, or what the complete report leads to. Pure. */
export function planExamining(observed: ObservedIn<'Examining'>): ClusterPromotionStep {
  const { record, policyGaps, toolGaps, progress, podProblem, rules, now } = observed;
  const missing = [...policyGaps, ...toolGaps];
  if (missing.length > 0) return candidate(missing, now);
  if (progress?.kind === 'report') return planReport(progress.report, observed);
  const problem = progress?.kind === 'unusable' ? progress.problem : (podProblem ?? problemOf(observed));
  if (problem !== undefined) return tryAgain(record.tries, problem, now, rules);
  if (progress?.kind === 'testers') return { step: 'askTesters', repetition: repetitionOf(record, now) };
  return progress?.kind === 'round' ? { step: 'runRound' } : { step: 'wait' };
}

function problemOf({ record, progress, now }: ObservedIn<'Examining'>): string | undefined {
  if (Date.parse(record.deadline) <= now.getTime()) {
    return progress?.kind === 'testers'
      ? 'the testers gave no answer in time'
      : 'the pod did not finish the examination in time';
  }
  const isLong = progress?.kind === 'round' && record.rounds.length >= MAX_ROUNDS;
  return isLong
    ? `the inputs of the examination need more than ${MAX_ROUNDS} rounds; give the tool smaller tests`
    : undefined;
}

function planReport(
  report: ExaminationReport,
  { record, sourceWithheld, rules, now }: ObservedIn<'Examining'>,
): ClusterPromotionStep {
  const { figures } = record;
  const verdict = examinationVerdict(report, rules.examination);
  const facts = examinationFigures(report);
  const examined = {
    tool: record.tool,
    agent: record.agent.name,
    agentUid: record.agent.uid,
    tier: 'Agent',
    attempt: record.attempt,
    outcome: verdict.outcome,
    report: digestOf(report as unknown as JsonObject),
    ...facts,
  };
  const planned = planAfterExamination(verdict, rules);
  if (planned.step === 'reject')
    return { ...rejected(planned.cause, now, planned.coolDownMs, { figures, verdicts: [] }), examined };
  // The cases may have texts of the source. The panel is asked first: it may refuse.
  const questions = questionsOf(report, verdict).map((question) =>
    sourceWithheld ? { ...question, cases: [] } : question,
  );
  return { step: 'enter', stage: { state: 'PanelReview', figures, facts, questions }, examined };
}
