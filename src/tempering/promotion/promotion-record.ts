import type { JudgeVerdict } from '../../forge/types.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { type ExaminationQuestion, topicsOf } from '../examination/questions.ts';
import type { RecordedInput } from '../types.ts';
import type { ContradictedReports } from '../verification/contradicted-reports.ts';
import type { RerunFigures } from './promotion-rules.ts';

/** The tool that a promotion on a cluster is about: an agent's, from one of its sessions. */
export interface PromotedSubject {
  agent: { namespace: string; name: string; uid: string };
  /** Name of the tool. */
  tool: string;
  digest: Digest;
  /** A session that has the tool; empty for a promotion that was restored. */
  session: string;
  /** Present after NATS lost the promotion and its session: the ApprovalRequest that has the tool, and what it says about the session. */
  restored?: { request: string; tainted: boolean };
}

/** What a decision rests on. */
interface PromotionEvidence {
  figures: RerunFigures;
  verdicts: JudgeVerdict[];
  /** Present when re-runs contradict what the pod of the agent reported. */
  contradicted?: ContradictedReports;
}

/** A tool whose re-runs and examination did not refuse it. */
interface ExaminedTool {
  figures: RerunFigures;
  /** Numbers of the examination, which the panel sees beside the figures. */
  facts: Readonly<Record<string, number>>;
  /** What a user has to decide; empty when nothing is open. */
  questions: readonly ExaminationQuestion[];
}
/** What a re-run of a recorded input is compared with; it never enters the verifier pod. */
export type ExpectedRerun = Pick<RecordedInput, 'root' | 'answers' | 'output'> & {
  /** The schema of the tool refuses the input, so no agent called the tool with it. */
  inputRefused?: true;
};

/** Why a verification was started again. */
export interface VerificationTries {
  failed: number;
  lastProblem: string;
}

/**
 * The states of a promotion to tier Agent on a cluster. `concluded` is false until the effects of a decision are complete: object,
 * status, Event and audit record. The write of the state is the decision, so its effects can be repeated by any later leader.
 */
export type PromotionStage =
  /** Waits for a verifier pod. */
  | { state: 'Requested'; tries: VerificationTries }
  | {
      state: 'Verifying';
      tries: VerificationTries;
      pod: { name: string; uid: string };
      deadline: string;
      /** The recorded inputs, in the order in which the pod runs them after the tests. */
      recorded: readonly ExpectedRerun[];
    }
  | {
      state: 'Examining';
      tries: VerificationTries;
      /** The pod of the re-runs. */
      pod: { name: string; uid: string };
      deadline: string;
      figures: RerunFigures;
      /** The digest of the work of each round that the pod got; the last round may still run. */
      rounds: readonly Digest[];
    }
  | ({ state: 'PanelReview' } & ExaminedTool)
  | ({
      state: 'AwaitingApproval';
      /** The name of the ApprovalRequest. */
      request: string;
      nonce: string;
      verdicts: JudgeVerdict[];
    } & ExaminedTool)
  | ({ state: 'Promoted'; note: string; concluded: boolean } & PromotionEvidence)
  | { state: 'Rejected'; reason: string; notBefore: string; concluded: boolean; evidence?: PromotionEvidence }
  /** Not decided: requirements are missing. */
  | { state: 'Candidate'; missing: readonly string[]; notBefore: string };

export type PromotionRecord = PromotedSubject & {
  /** Identifies this attempt in its verification, its review and its audit records. */
  attempt: string;
  /** RFC 3339: since when in this state. */
  since: string;
} & PromotionStage;

type PromotionRecordState = PromotionRecord['state'];
const STATES: readonly Json[] = [
  'Requested',
  'Verifying',
  'Examining',
  'PanelReview',
  'AwaitingApproval',
  'Promoted',
  'Rejected',
  'Candidate',
] satisfies PromotionRecordState[];

/** Whether a new request may start another attempt. */
export function isOpenForRequests(record: PromotionRecord | undefined, now: Date): boolean {
  if (record === undefined) return true;
  if (record.state === 'Candidate') return Date.parse(record.notBefore) <= now.getTime();
  return record.state === 'Rejected' && record.concluded && Date.parse(record.notBefore) <= now.getTime();
}

/** Whether the operator has nothing more to do for the record. */
export function isSettled(record: PromotionRecord): boolean {
  if (record.state === 'Candidate') return true;
  return (record.state === 'Promoted' || record.state === 'Rejected') && record.concluded;
}

/** Why the tool is in this state, and what comes next; for users. */
export function describePromotion(record: PromotionRecord): { reason: string; next: string } {
  switch (record.state) {
    case 'Requested': {
      const { failed, lastProblem } = record.tries;
      const reason = failed === 0 ? 'its reported uses meet the policy' : `a verification ended early: ${lastProblem}`;
      return { reason, next: 'waits for a verifier pod' };
    }
    case 'Verifying':
      return {
        reason: `pod ${record.pod.name} runs its tests and recorded inputs again`,
        next: 'an examination follows when the figures meet the policy',
      };
    case 'Examining':
      return {
        reason: `pod ${record.pod.name} runs it with inputs that its author did not choose`,
        next: 'the panel reviews it when the examination does not refuse it',
      };
    case 'PanelReview':
      return {
        reason: 're-runs and examination do not refuse it',
        next: 'two reviewers decide; each can refuse',
      };
    case 'AwaitingApproval':
      return {
        reason: `ApprovalRequest "${record.request}" waits for an approver${openTopics(record.questions)}`,
        next: `kubectl temper approve ${record.request} --reason …, or deny`,
      };
    case 'Promoted':
      return record.concluded
        ? { reason: record.note, next: 'its agent can call it in every session' }
        : { reason: record.note, next: 'the operator creates the EmergentTool' };
    case 'Rejected':
      return { reason: record.reason, next: `uses can request it again from ${record.notBefore}` };
    case 'Candidate':
      return { reason: record.missing.join('; '), next: `uses can request it again from ${record.notBefore}` };
  }
}

function openTopics(questions: readonly ExaminationQuestion[]): string {
  return questions.length === 0 ? '' : `; its examination leaves questions: ${topicsOf(questions).join(', ')}`;
}

/** Undefined for a value that is not a record of this agent and digest. */
export function parsePromotionRecord(value: Json | undefined): PromotionRecord | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.agent) || !isDigest(value.digest)) return undefined;
  const { uid, name, namespace } = value.agent;
  const texts = [uid, name, namespace, value.tool, value.session, value.attempt, value.since];
  if (!texts.every((text) => typeof text === 'string') || !STATES.includes(value.state ?? null)) return undefined;
  if (value.state === 'Verifying' && !Array.isArray(value.recorded)) return undefined;
  return value as unknown as PromotionRecord;
}
