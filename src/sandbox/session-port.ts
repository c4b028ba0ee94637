import type { CallOptions } from '../lib/call-options.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { SandboxFailure, TimeAndRandomness } from './port.ts';

/** Limits of a session runner. All but the memory hold for each run. */
export interface SessionLimits {
  /** Heap bytes that the engine may use; the supervisor kills a process that exceeds this limit plus a fixed overhead. */
  memoryBytes: number;
  /** Milliseconds in which code itself may run. Waiting for the host does not count. */
  guestMilliseconds: number;
  /** Wall-clock milliseconds, waiting included. */
  runMilliseconds: number;
  /** Of the value that the code returns, and of the value that it finishes with. */
  outputBytes: number;
  /** Of the snapshot of `memory`. */
  snapshotBytes: number;
  logBytes: number;
  calls: number;
  /** Of arguments and answers together. */
  callBytes: number;
}

/** One call of the code to its host. `call` counts the calls of the run, from 1. `input` is untrusted JSON. */
export interface SessionRequest {
  call: number;
  name: string;
  input: Json;
}

/** What code gets for a call: a value, or an error with this code. `time` is the clock of the code from then on, in milliseconds since 1970. */
export type SessionAnswer = { time: number } & (
  | { ok: true; value: Json }
  | { ok: false; code: ErrorCode; message: string }
);

/** The single callback of a run. It checks everything that it gets, and must not throw. */
export type SessionCall = (request: SessionRequest, op: CallOptions) => Promise<SessionAnswer>;

/** The members of `memory` at the end of a run, as JSON. */
export interface MemorySnapshot {
  values: JsonObject;
  /** The members that JSON cannot hold, with the reasons. They live as long as the runner. */
  omitted: readonly OmittedMember[];
}

export interface OmittedMember {
  name: string;
  reason: string;
}

/** What a run printed, and what it used. */
export interface RunReport {
  /** What the code wrote to the console: untrusted text, at most `logBytes`. */
  log: string;
  /** More was written than `log` holds. */
  isLogCut: boolean;
  /** Calls that the code had not awaited when it ended. The run waited for them. */
  unawaited: number;
  usage: { guestMilliseconds: number; heapBytes: number; calls: number };
}

export type RunOutcome = RunReport & {
  /** The first value that the code finished with. */
  finished?: { value: Json };
  /** Absent when the runner has ended: what the run changed in `memory` is lost. */
  memory?: MemorySnapshot;
} & (
    | { ok: true /** Absent when the code returned nothing. */; value?: Json }
    /** `message` is bounded, printable and holds no host path. */
    | { ok: false; code: SandboxFailure; message: string }
  );

/** One run: a function body that may use `await`. */
export interface SessionRun {
  code: string;
  /** Absent: the present time and a random seed. */
  timeAndRandomness?: Pick<TimeAndRandomness, 'startTime' | 'seed'>;
}

/** Runs code of one session. Its globals live as long as the runner. */
export interface SessionRunner {
  /** False when the process of the runner has ended. */
  readonly isOpen: boolean;
  /** One run at a time. A failed run is an outcome; nothing that the code does makes this method throw. */
  run(run: SessionRun, call: SessionCall, op: CallOptions): Promise<RunOutcome>;
  /** Ends the process. Idempotent. */
  close(): Promise<void>;
}

export interface SessionOptions {
  limits: SessionLimits;
  /** The members of `memory` at the start. */
  memory: JsonObject;
}

export interface SessionSandbox {
  /** Starts the process of a session, which serves no other session. Throws TEMPER_SANDBOX_UNAVAILABLE, TEMPER_SANDBOX_INPUT_TOO_LARGE or TEMPER_CANCELLED. */
  openSession(options: SessionOptions, op: CallOptions): Promise<SessionRunner>;
}

/** The call with which code waits. No tool has this name. Its input is `{milliseconds}`. */
export const TIMER_CALL = 'setTimeout';
