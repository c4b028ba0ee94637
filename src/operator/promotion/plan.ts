import type { PromotionStage, VerificationTries } from '../../tempering/promotion/promotion-record.ts';
import { isSettled } from '../../tempering/promotion/promotion-record.ts';
import { planAfterPanel, planAfterReruns } from '../../tempering/promotion/promotion-plan.ts';
import { describeContradictions } from '../../tempering/verification/contradicted-reports.ts';
import type { ObservedPromotion } from './observed.ts';

/** The next step of a promotion. Each step writes the state at most once, over the revision that was read. */
export type ClusterPromotionStep =
  /** Removes the state: agent or tool do not exist any more. */
  | { readonly step: 'forget' }
  /** Writes the next state. */
  | { readonly step: 'enter'; readonly stage: PromotionStage }
  /** Assigns a verifier pod and enters Verifying; without a free pod it waits. */
  | { readonly step: 'verify' }
  /** Asks the panel for its review. `repetition`: the number of earlier requests. */
  | { readonly step: 'askPanel'; readonly repetition: number }
  | { readonly step: 'wait' }
  /** Applies a decision: object, status, Event, audit record. */
  | { readonly step: 'conclude' }
  | { readonly step: 'done' };

/** Verifications without a result, until the promotion is given up for a while. */
const MAX_TRIES = 3;
const UNFINISHED_COOL_DOWN_MS = 60 * 60_000;
/** Time until uses can request a promotion again that lacks something. */
const CANDIDATE_WAIT_MS = 10 * 60_000;
/** A request for a review is stored until it is answered, unless NATS lost it. */
const REPEAT_REVIEW_MS = 10 * 60_000;

/**
 *   Requested ──a pod is free──▶ Verifying ──figures suffice──▶ PanelReview ──both approve──▶ Promoted
 *       ▲                          │   │ failed                     │ refused
 *       └── pod ended, 3 times ────┘   └──────────▶ Rejected ◀──────┘
 *
 * From every state to Candidate, when the policy permits no promotion any more or something is missing.
 */
export function planPromotion(observed: ObservedPromotion): ClusterPromotionStep {
  const { record } = observed;
  if (isSettled(record)) return { step: 'done' };
  if (!observed.agentExists) return { step: 'forget' };
  switch (record.state) {
    case 'Requested':
      return planRequested(observed as In<'Requested'>);
    case 'Verifying':
      return planVerifying(observed as In<'Verifying'>);
    case 'PanelReview':
      return planPanelReview(observed as In<'PanelReview'>);
    default:
      return { step: 'conclude' };
  }
}

type In<S extends ObservedPromotion['record']['state']> = Extract<ObservedPromotion, { record: { state: S } }>;

function planRequested({ toolExists, promoted, policyGaps, toolGaps, now }: In<'Requested'>): ClusterPromotionStep {
  if (!toolExists || promoted) return { step: 'forget' };
  const missing = [...policyGaps, ...toolGaps];
  return missing.length > 0 ? candidate(missing, now, CANDIDATE_WAIT_MS) : { step: 'verify' };
}

function planVerifying(observed: In<'Verifying'>): ClusterPromotionStep {
  const { record, result, podProblem, policyGaps, rules, now } = observed;
  if (policyGaps.length > 0) return candidate(policyGaps, now, CANDIDATE_WAIT_MS);
  if (result?.kind === 'figures') return planFigures(result, observed);
  const isLate = Date.parse(record.deadline) <= now.getTime();
  const problem = result?.problem ?? podProblem ?? (isLate ? 'the pod sent no outputs in time' : undefined);
  if (problem === undefined) return { step: 'wait' };
  const tries: VerificationTries = { failed: record.tries.failed + 1, lastProblem: problem };
  if (tries.failed < MAX_TRIES) return { step: 'enter', stage: { state: 'Requested', tries } };
  const missing = [`${MAX_TRIES} verifications ended without a result; the last one: ${problem}`];
  return candidate(missing, now, Math.min(UNFINISHED_COOL_DOWN_MS, rules.coolDownMs));
}

function planFigures(
  { figures, refusal, facts, contradicted }: Extract<NonNullable<In<'Verifying'>['result']>, { kind: 'figures' }>,
  { rules, now }: In<'Verifying'>,
): ClusterPromotionStep {
  const lie = describeContradictions(contradicted);
  const evidence = { figures, verdicts: [], ...(lie === undefined ? {} : { contradicted }) };
  const planned = planAfterReruns(figures, rules);
  if (lie !== undefined) {
    const reasons = planned.step === 'reject' ? [lie, planned.cause] : [lie];
    return rejected(reasons.join('; '), now, rules.coolDownMs, evidence);
  }
  if (planned.step === 'stay') {
    const missing = planned.state.state === 'Candidate' ? planned.state.missing : [];
    return candidate(missing, now, CANDIDATE_WAIT_MS);
  }
  const cause = planned.step === 'reject' ? planned.cause : refusal;
  if (cause === undefined) return { step: 'enter', stage: { state: 'PanelReview', figures, facts } };
  return rejected(cause, now, rules.coolDownMs, evidence);
}

function planPanelReview({ record, review, policyGaps, rules, now }: In<'PanelReview'>): ClusterPromotionStep {
  if (policyGaps.length > 0) return candidate(policyGaps, now, CANDIDATE_WAIT_MS);
  if (review === undefined) {
    const waitedMs = Math.max(0, now.getTime() - Date.parse(record.since));
    return { step: 'askPanel', repetition: Math.floor(waitedMs / REPEAT_REVIEW_MS) };
  }
  const { figures } = record;
  const planned = planAfterPanel(review, figures, { ...rules, requireHuman: false });
  const evidence = { figures, verdicts: [...review.verdicts] };
  if (planned.step === 'promote') {
    return { step: 'enter', stage: { state: 'Promoted', note: planned.note, concluded: false, ...evidence } };
  }
  const { cause, coolDownMs } =
    planned.step === 'reject' ? planned : { cause: 'an approval is required', coolDownMs: rules.coolDownMs };
  return rejected(cause, now, coolDownMs, evidence);
}

function candidate(missing: readonly string[], now: Date, waitMs: number): ClusterPromotionStep {
  return { step: 'enter', stage: { state: 'Candidate', missing, notBefore: after(now, waitMs) } };
}

function rejected(
  reason: string,
  now: Date,
  coolDownMs: number,
  evidence: NonNullable<Extract<PromotionStage, { state: 'Rejected' }>['evidence']>,
): ClusterPromotionStep {
  const notBefore = after(now, coolDownMs);
  return { step: 'enter', stage: { state: 'Rejected', reason, notBefore, concluded: false, evidence } };
}

function after(now: Date, milliseconds: number): string {
  return new Date(now.getTime() + milliseconds).toISOString();
}
