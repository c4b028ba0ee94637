import { canonicalJson } from '../../lib/canonical.ts';
import { type Json, jsonDepth } from '../../lib/json.ts';
import { findCredential } from '../../policy/detect/credentials.ts';
import { argumentTexts } from '../../policy/detect/texts.ts';
import type { CallRecording, UnrecordedReason, UseRecording } from '../../tools/recording/call-recording.ts';
import type { AnswerEvidence, Evidence, EvidencedCall, RecordedInput } from '../types.ts';

/** Maximum number of recorded calls of one use, and the bytes and the depth of their canonical JSON. */
export const MAX_CALLS = 64;
export const MAX_RECORDING_BYTES = 1_048_576;
const MAX_RECORDING_DEPTH = 300;

/**
 * The recording of a use in the form in which it is stored, or why it is not: answers stay as the tool got them, because a replay needs
 * them, so one with a secret is not stored at all.
 */
export function toUseRecording(recording: CallRecording, evidence: Evidence): UseRecording<EvidencedCall> {
  if (recording.calls.length > MAX_CALLS) return { ok: false, reason: 'TooManyCalls' };
  const calls = recording.calls.map(({ name, input, answer }): EvidencedCall => {
    return answer === undefined ? { name, input, evidence } : { name, input, answer, evidence };
  });
  const { sandbox } = recording;
  const stored: CallRecording<EvidencedCall> = sandbox === undefined ? { calls } : { calls, sandbox };
  const reason = unrecordedReason(stored);
  return reason === undefined ? { ok: true, recording: stored } : { ok: false, reason };
}

/** A recording that a pod reported, within the same limits. `isCarried`: whether a gateway carried the call; only such a call is observed. */
export function asReported(
  recording: UseRecording<EvidencedCall>,
  isCarried: (call: EvidencedCall) => boolean,
): UseRecording<EvidencedCall> {
  const checked = recording.ok ? toUseRecording(recording.recording, 'reported') : recording;
  if (!checked.ok) return checked;
  const calls = checked.recording.calls.map((call) =>
    isCarried(call) ? { ...call, evidence: 'observed' as const } : call,
  );
  return { ok: true, recording: { ...checked.recording, calls } };
}

function unrecordedReason(recording: CallRecording): UnrecordedReason | undefined {
  const value = recording as unknown as Json;
  if (jsonDepth(value, MAX_RECORDING_DEPTH) >= MAX_RECORDING_DEPTH) return 'RecordingTooLarge';
  let text: string;
  try {
    text = canonicalJson(value);
  } catch (error) {
    if (error instanceof RangeError) return 'NotCanonical';
    throw error;
  }
  if (Buffer.byteLength(text) > MAX_RECORDING_BYTES) return 'RecordingTooLarge';
  const hasSecret = argumentTexts(value).some(({ name, text: part }) => findCredential(name, part) !== undefined);
  return hasSecret ? 'ContainsSecret' : undefined;
}

/** The weakest evidence of what a recorded input replays: time and randomness have the evidence of the use itself. */
export function answerEvidence(
  recording: CallRecording<EvidencedCall> | undefined,
  evidence: Evidence,
): RecordedInput['answers'] {
  if (recording === undefined) return 'none';
  const isReported =
    (recording.sandbox !== undefined && evidence === 'reported') || recording.calls.some(isReportedCall);
  return isReported ? 'reported' : 'observed';
}

function isReportedCall({ evidence }: EvidencedCall): boolean {
  return evidence === 'reported';
}

/** The number of recorded inputs by the evidence of their answers. */
export function countAnswers(inputs: readonly { answers: AnswerEvidence }[]): Record<AnswerEvidence, number> {
  const counts = { none: 0, observed: 0, reported: 0 };
  for (const { answers } of inputs) counts[answers] += 1;
  return counts;
}
