import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json } from '../../lib/json.ts';
import type { HostAnswer } from '../../sandbox/port.ts';

/** The answer to a call, as the tool got it. */
export type RecordedAnswer = { ok: true; value: Json } | { ok: false; code: ErrorCode; message: string };

/** One call of a tool: of a host function by its code, or of another tool by a step. */
export interface RecordedCall {
  /** The host function, or the tool of the step as the step names it. */
  name: string;
  input: Json;
  /** Absent when the tool ended before the answer. */
  answer?: RecordedAnswer;
}

/** Everything that a run of a tool got from outside besides its input. The run can be repeated with it. */
export interface CallRecording<Call extends RecordedCall = RecordedCall> {
  /** In the order in which the tool made them. */
  calls: Call[];
  /** Absent for a composed tool, which has neither a clock nor randomness of its own. */
  sandbox?: SandboxRecording;
}

/** Time and randomness of a run in the sandbox, and the answers to its host calls in the order in which it got them. */
interface SandboxRecording {
  startTime: number;
  seed: string;
  answers: HostAnswer[];
}

/** Why a use has no recording. */
export const UNRECORDED_REASONS = [
  /** More than MAX_CALLS calls. */
  'TooManyCalls',
  /** More than MAX_RECORDING_BYTES, or nested deeper than MAX_RECORDING_DEPTH. */
  'RecordingTooLarge',
  /** A detector found a credential in an argument or an answer. */
  'ContainsSecret',
  /** Text that is not valid Unicode. */
  'NotCanonical',
] as const;
export type UnrecordedReason = (typeof UNRECORDED_REASONS)[number];

export type UseRecording<Call extends RecordedCall = RecordedCall> =
  | { ok: true; recording: CallRecording<Call> }
  | { ok: false; reason: UnrecordedReason };
