import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';

/** Names of host functions as a tool declares them. `clock` and `random` only unfreeze time and randomness. */
export type HostApi = 'fetch' | 'fs.readFile' | 'crypto' | 'clock' | 'random';

export interface JobLimits {
  /** Wall-clock milliseconds from start to result; enforced from outside the process. */
  durationMilliseconds: number;
  /** Bytes of heap the engine may use. The process as a whole is ended at this plus a fixed overhead. */
  memoryBytes: number;
  outputBytes: number;
  hostCalls: number;
  hostBytes: number;
}

/** One run of guest code. Nothing expected of the result is ever part of it. */
export interface Job {
  language: 'javascript';
  /** Defines `execute(input)` or `run(input)`, sync or async. */
  source: string;
  input: Json;
  apis: readonly HostApi[];
  limits: JobLimits;
}

/** The closed set of ways a job can fail. */
export type SandboxFailure = Extract<
  ErrorCode,
  | 'TEMPER_SANDBOX_UNAVAILABLE'
  | 'TEMPER_SANDBOX_SYNTAX'
  | 'TEMPER_SANDBOX_NO_ENTRY'
  | 'TEMPER_SANDBOX_THREW'
  | 'TEMPER_SANDBOX_TIMEOUT'
  | 'TEMPER_SANDBOX_MEMORY'
  | 'TEMPER_SANDBOX_OUTPUT_INVALID'
  | 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE'
  | 'TEMPER_SANDBOX_INPUT_TOO_LARGE'
  | 'TEMPER_SANDBOX_CALL_BUDGET'
  | 'TEMPER_SANDBOX_CRASHED'
  | 'TEMPER_CANCELLED'
>;

export interface JobUsage {
  /** Wall-clock milliseconds inside the runner, bootstrap and compilation included. */
  milliseconds: number;
  /** Peak heap bytes the engine reported; 0 when it could not. */
  heapBytes: number;
  hostCalls: number;
}

export type Outcome =
  | { ok: true; output: Json; usage: JobUsage }
  /** `message` is bounded, printable and holds no host path. */
  | { ok: false; code: SandboxFailure; message: string; usage: JobUsage };

/**
 * What guest code may ask of the host. Called only for a declared function, with arguments as plain JSON;
 * the implementation re-checks permission at each call and throws TemperError (its code and message reach the guest, nothing else).
 */
export interface HostCalls {
  call(api: 'fetch' | 'fs.readFile' | 'crypto', input: Json, op: Op): Promise<Json>;
}

export interface Sandbox {
  /** Never throws for what guest code does; a failed job is an outcome. */
  run(job: Job, host: HostCalls, op: Op): Promise<Outcome>;
}
