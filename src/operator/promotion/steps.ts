import type { JsonObject } from '../../lib/json.ts';
import type { PromotionStage, VerificationTries } from '../../tempering/promotion/promotion-record.ts';
import type { PromotionRules } from '../../tempering/promotion/promotion-rules.ts';
import type { JudgeVerdict } from '../../forge/types.ts';

/** The next step of a promotion. Each step writes the state at most once, over the revision that was read. */
export type ClusterPromotionStep =
  /** Removes the state: agent or tool do not exist any more. */
  | { readonly step: 'forget' }
  /** Writes the next state. `examined`: what the audit record of the examination states, which is stored first. */
  | { readonly step: 'enter'; readonly stage: PromotionStage; readonly examined?: JsonObject }
  /** Assigns a verifier pod and enters Verifying; without a free pod it waits. */
  | { readonly step: 'verify' }
  /** Gives the pod the next inputs of the examination. */
  | { readonly step: 'runRound' }
  /** Asks the testers for their cases. `repetition`: the number of earlier requests. */
  | { readonly step: 'askTesters'; readonly repetition: number }
  /** Asks the panel for its review. */
  | { readonly step: 'askPanel'; readonly repetition: number }
  /** Enters AwaitingApproval with a new nonce. */
  | { readonly step: 'awaitApproval'; readonly verdicts: readonly JudgeVerdict[] }
  /** Creates the ApprovalRequest of the state. */
  | { readonly step: 'requestApproval' }
  | { readonly step: 'wait'; readonly forMs?: number }
  /** Applies a decision: object, status, Event, audit record. */
  | { readonly step: 'conclude' }
  | { readonly step: 'done' };

/** Verifications without a result, until the promotion is given up for a while. */
const MAX_TRIES = 3;
const UNFINISHED_COOL_DOWN_MS = 60 * 60_000;
/** Time until uses can request a promotion again that lacks something. */
const CANDIDATE_WAIT_MS = 10 * 60_000;
/** A request for models is stored until it is answered, unless NATS lost it. */
const REPEAT_REQUEST_MS = 10 * 60_000;

export function candidate(missing: readonly string[], now: Date, waitMs = CANDIDATE_WAIT_MS): ClusterPromotionStep {
  return { step: 'enter', stage: { state: 'Candidate', missing, notBefore: after(now, waitMs) } };
}

export function rejected(
  reason: string,
  now: Date,
  coolDownMs: number,
  evidence: NonNullable<Extract<PromotionStage, { state: 'Rejected' }>['evidence']>,
): Extract<ClusterPromotionStep, { step: 'enter' }> {
  const notBefore = after(now, coolDownMs);
  return { step: 'enter', stage: { state: 'Rejected', reason, notBefore, concluded: false, evidence } };
}

/** Another verification, because this one says nothing about the tool. */
export function tryAgain(
  tries: VerificationTries,
  problem: string,
  now: Date,
  { coolDownMs }: PromotionRules,
): ClusterPromotionStep {
  const failed = tries.failed + 1;
  if (failed < MAX_TRIES)
    return { step: 'enter', stage: { state: 'Requested', tries: { failed, lastProblem: problem } } };
  const missing = [`${MAX_TRIES} verifications ended without a result; the last one: ${problem}`];
  return candidate(missing, now, Math.min(UNFINISHED_COOL_DOWN_MS, coolDownMs));
}

/** How often models were asked since the state was entered. */
export function repetitionOf({ since }: { since: string }, now: Date): number {
  return Math.floor(Math.max(0, now.getTime() - Date.parse(since)) / REPEAT_REQUEST_MS);
}

function after(now: Date, milliseconds: number): string {
  return new Date(now.getTime() + milliseconds).toISOString();
}
