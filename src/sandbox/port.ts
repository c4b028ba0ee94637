import type { ToolApi } from '../api/v1alpha1/common.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';

/** The host functions that need the host; the runner answers the others itself. */
export type ForwardedApi = Extract<ToolApi, 'fetch' | 'fs.readFile'>;

export function isForwardedApi(value: unknown): value is ForwardedApi {
  return value === 'fetch' || value === 'fs.readFile';
}

export interface JobLimits {
  /** Wall-clock milliseconds from start to result; the supervisor enforces it from outside the process. */
  durationMilliseconds: number;
  /** Heap bytes that the engine may use. The supervisor kills a process that exceeds this limit plus a fixed overhead. */
  memoryBytes: number;
  outputBytes: number;
  hostCalls: number;
  hostBytes: number;
}

/**
 * The time and the randomness that guest code gets. Its clock stands still between the answers of host calls, so two runs with the same
 * values and the same answers give the same output.
 */
export interface TimeAndRandomness {
  /** The time at the start, in milliseconds since 1970. */
  startTime: number;
  /** 32 hexadecimal digits, from which all random values derive. */
  seed: string;
  /** The times of the answers, in their order. Without one, an answer has the present time. */
  answerTimes?: readonly number[];
}

/** One run of guest code. It never contains the expected result. */
export interface Job {
  language: 'javascript';
  /** Defines `execute(input)` or `run(input)`, sync or async. */
  source: string;
  input: Json;
  apis: readonly ToolApi[];
  limits: JobLimits;
  /** The present time and a random seed when absent. */
  timeAndRandomness?: TimeAndRandomness;
  /** The session for which it runs. A process never runs jobs of two owners, and jobs without one count as one owner. */
  owner?: string;
  /** Among waiting jobs a higher rank starts first, without one that waits forever. Absent: 0. Only where agents share a sandbox. */
  rank?: number;
}

/** Failures that a runner may report. */
const RUNNER_FAILURES = [
  'TEMPER_SANDBOX_SYNTAX',
  'TEMPER_SANDBOX_NO_ENTRY',
  'TEMPER_SANDBOX_EXCEPTION',
  'TEMPER_SANDBOX_TIMEOUT',
  'TEMPER_SANDBOX_MEMORY',
  'TEMPER_SANDBOX_OUTPUT_INVALID',
  'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
  'TEMPER_SANDBOX_CALL_BUDGET',
] as const satisfies readonly ErrorCode[];
export type RunnerFailure = (typeof RUNNER_FAILURES)[number];

/** The closed set of ways a job can fail: besides those of a runner, those that only the supervisor reports. */
const SANDBOX_FAILURES = [
  ...RUNNER_FAILURES,
  'TEMPER_SANDBOX_UNAVAILABLE',
  'TEMPER_SANDBOX_INPUT_TOO_LARGE',
  'TEMPER_SANDBOX_CRASHED',
  'TEMPER_CANCELLED',
] as const satisfies readonly ErrorCode[];
export type SandboxFailure = (typeof SANDBOX_FAILURES)[number];

export function isRunnerFailure(value: unknown): value is RunnerFailure {
  return (RUNNER_FAILURES as readonly unknown[]).includes(value);
}

export function isSandboxFailure(value: unknown): value is SandboxFailure {
  return (SANDBOX_FAILURES as readonly unknown[]).includes(value);
}

export interface JobUsage {
  /** Wall-clock milliseconds inside the runner, bootstrap and compilation included. */
  milliseconds: number;
  /** Peak heap bytes the engine reported; 0 when it could not. */
  heapBytes: number;
  hostCalls: number;
  /** The answers that guest code got to its host calls, in their order. Absent when it got none. */
  answers?: readonly HostAnswer[];
}

/** The answer to one host call of a job. */
export interface HostAnswer {
  /** The number of the call, from 1. */
  call: number;
  /** The time of the answer, in milliseconds since 1970. */
  time: number;
}

export type JobOutcome =
  | { ok: true; output: Json; usage: JobUsage }
  /** `message` is bounded, printable and holds no host path. */
  | { ok: false; code: SandboxFailure; message: string; usage: JobUsage };

/**
 * The host functions for guest code. Called only for a declared function, with arguments as plain JSON. The implementation
 * checks the permission again at each call and throws TemperError; only its code and message reach the guest.
 */
export interface HostCalls {
  call(api: ForwardedApi, input: Json, op: CallOptions): Promise<Json>;
}

export interface Sandbox {
  /** Runs a job. A failed job is an outcome; nothing that guest code does makes this method throw. */
  run(job: Job, host: HostCalls, op: CallOptions): Promise<JobOutcome>;
}
