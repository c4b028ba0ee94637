import { isSettled } from '../../tempering/promotion/promotion-record.ts';
import { planAfterPanel, planAfterReruns } from '../../tempering/promotion/promotion-plan.ts';
import { describeContradictions } from '../../tempering/verification/contradicted-reports.ts';
import { topicsOf } from '../../tempering/examination/questions.ts';
import { planAwaitingApproval } from './approval/plan-approval.ts';
import { planExamining } from './examination/plan-examination.ts';
import type { ObservedIn, ObservedPromotion } from './observed.ts';
import { candidate, type ClusterPromotionStep, rejected, repetitionOf, tryAgain } from './steps.ts';

/**
 *   Requested ──a pod is free──▶ Verifying ──figures suffice──▶ Examining ──no refusal──▶ PanelReview ──both approve──▶ Promoted
 *       ▲                          │   │ failed                 │    │ refused              │ refused │ a user decides    ▲
 *       └── pod ended, 3 times ────┴───│────────────────────────┘    ▼                      ▼         ▼                   │
 *                                      └──────────────────────▶ Rejected ◀── denied ── AwaitingApproval ──── approved ────┘
 *
 * From every state to Candidate, when the policy permits no promotion any more or something is missing.
 */
export function planPromotion(observed: ObservedPromotion): ClusterPromotionStep {
  const { record } = observed;
  if (isSettled(record)) return { step: 'done' };
  if (!observed.agentExists) return { step: 'forget' };
  switch (record.state) {
    case 'Requested':
      return planRequested(observed as ObservedIn<'Requested'>);
    case 'Verifying':
      return planVerifying(observed as ObservedIn<'Verifying'>);
    case 'Examining':
      return planExamining(observed as ObservedIn<'Examining'>);
    case 'PanelReview':
      return planPanelReview(observed as ObservedIn<'PanelReview'>);
    case 'AwaitingApproval':
      return planAwaitingApproval(observed as ObservedIn<'AwaitingApproval'>);
    default:
      return { step: 'conclude' };
  }
}

function planRequested(observed: ObservedIn<'Requested'>): ClusterPromotionStep {
  const { toolExists, promoted, policyGaps, toolGaps, now } = observed;
  if (!toolExists || promoted) return { step: 'forget' };
  const missing = [...policyGaps, ...toolGaps];
  return missing.length > 0 ? candidate(missing, now) : { step: 'verify' };
}

function planVerifying(observed: ObservedIn<'Verifying'>): ClusterPromotionStep {
  const { record, result, podProblem, policyGaps, rules, now } = observed;
  if (policyGaps.length > 0) return candidate(policyGaps, now);
  if (result?.kind === 'figures') return planFigures(result, observed);
  const isLate = Date.parse(record.deadline) <= now.getTime();
  const problem = result?.problem ?? podProblem ?? (isLate ? 'the pod sent no outputs in time' : undefined);
  return problem === undefined ? { step: 'wait' } : tryAgain(record.tries, problem, now, rules);
}

/** The examination runs in the same pod: its time begins now. */
const EXAMINATION_MS = 10 * 60_000;

function planFigures(
  { figures, contradicted }: Extract<NonNullable<ObservedIn<'Verifying'>['result']>, { kind: 'figures' }>,
  { record: { tries, pod }, rules, now }: ObservedIn<'Verifying'>,
): ClusterPromotionStep {
  const lie = describeContradictions(contradicted);
  const evidence = { figures, verdicts: [], ...(lie === undefined ? {} : { contradicted }) };
  const planned = planAfterReruns(figures, rules);
  if (lie !== undefined) {
    const reasons = planned.step === 'reject' ? [lie, planned.cause] : [lie];
    return rejected(reasons.join('; '), now, rules.coolDownMs, evidence);
  }
  if (planned.step === 'reject') return rejected(planned.cause, now, rules.coolDownMs, evidence);
  if (planned.step === 'stay') {
    const missing = planned.state.state === 'Candidate' ? planned.state.missing : [];
    return candidate(missing, now);
  }
  const deadline = new Date(now.getTime() + EXAMINATION_MS).toISOString();
  return { step: 'enter', stage: { state: 'Examining', tries, pod, deadline, figures, rounds: [] } };
}

/** An approver must read what he approves. */
const UNREADABLE =
  'a user would have to decide, and cannot read the source, which spec.forge.persistSource of the agent withholds; set it to true and forge the tool again';

function planPanelReview(observed: ObservedIn<'PanelReview'>): ClusterPromotionStep {
  const { record, review, sourceWithheld, policyGaps, rules, now } = observed;
  if (policyGaps.length > 0) return candidate(policyGaps, now);
  if (review === undefined) return { step: 'askPanel', repetition: repetitionOf(record, now) };
  const { figures, questions } = record;
  const planned = planAfterPanel(review, figures, rules, topicsOf(questions));
  const evidence = { figures, verdicts: [...review.verdicts] };
  switch (planned.step) {
    case 'promote':
      return { step: 'enter', stage: { state: 'Promoted', note: planned.note, concluded: false, ...evidence } };
    case 'ask':
      if (sourceWithheld) return rejected(UNREADABLE, now, rules.coolDownMs, evidence);
      return { step: 'awaitApproval', verdicts: review.verdicts };
    case 'reject':
      return rejected(planned.cause, now, planned.coolDownMs, evidence);
  }
}
