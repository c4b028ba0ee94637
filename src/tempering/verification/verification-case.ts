import type { ToolFixture } from '../../forge/request.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { CallRecording } from '../../tools/recording/call-recording.ts';

/** An input that a verifier runs. Without an expected output, which never enters a process that runs guest code. */
export interface VerificationCase {
  input: JsonObject;
  /** Recorded results of tools with side effects, which replace their calls. */
  fixtures: readonly ToolFixture[];
  /** What a recorded use got from outside: its re-run gets the same, and nothing else. */
  recording?: CallRecording;
}

/** What one run gave. */
export type RunOutput = { ok: true; output: Json } | { ok: false; code: ErrorCode; message: string };

/** Failures at a limit of time or memory, whose cause may be the machine. */
const LIMIT_CODES: readonly ErrorCode[] = [
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_CRASHED',
  'TEMPER_TOOL_TIMEOUT',
];

export function isLimitFailure(run: RunOutput): boolean {
  return !run.ok && LIMIT_CODES.includes(run.code);
}

/** What both runs of a case gave. The second run of a case whose first was killed does not happen; it then repeats the first. */
export type CaseOutputs = readonly [RunOutput, RunOutput];

/** Of a whole verification. A tool whose tests and inputs take longer is not promoted. */
export const VERIFICATION_TIMEOUT_MS = 5 * 60_000;
