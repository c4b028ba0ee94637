/** Runs one job on one runner and enforces deadline, memory limit, call budget and cancellation from outside the untrusted process. */
import { randomBytes } from 'node:crypto';
import { onAbort } from '../lib/async/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { parseUntrustedJson } from '../lib/json.ts';
import { type CallOptions, remainingMs } from '../lib/call-options.ts';
import type { ForwardedApi, HostAnswer, HostCalls, Job, JobUsage, JobOutcome, SandboxFailure } from './port.ts';
import { parseOutput } from './json-text.ts';
import { ESCAPE_FACTOR, FRAME_OVERHEAD_BYTES, MAX_MESSAGE, type RunnerFrame } from './protocol.ts';
import { type MemoryReader, watchMemory } from './memory-usage.ts';
import type { RunnerProcess } from './runner-process.ts';

/** Time after the deadline in which the runner may report the timeout itself; then the supervisor kills it. */
const GRACE_MS = 60;
const SEED_BYTES = 16;

/** Failures of guest code after which the runner stays usable. */
const REUSABLE_FAILURES: ReadonlySet<SandboxFailure> = new Set<SandboxFailure>([
  'TEMPER_SANDBOX_SYNTAX',
  'TEMPER_SANDBOX_NO_ENTRY',
  'TEMPER_SANDBOX_EXCEPTION',
  'TEMPER_SANDBOX_OUTPUT_INVALID',
  'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
]);

export interface JobSessionResult {
  outcome: JobOutcome;
  /** Whether the runner may be used again after its next `ready` frame. */
  reusable: boolean;
}

export interface JobSessionOptions {
  runner: RunnerProcess;
  clock: Clock;
  readMemory: MemoryReader;
  job: Job;
  /** JSON text of the job's input. */
  input: string;
  host: HostCalls;
  op: CallOptions;
  number: number;
}

/**
 * Runs the job and calls `onSettled` once, synchronously, as soon as the outcome is known. The next frame of the runner may
 * be in the same chunk of bytes, so `onSettled` must set the runner's listener before it returns.
 */
export function runJobSession(parts: JobSessionOptions, onSettled: (result: JobSessionResult) => void): void {
  new JobSession(parts, onSettled).start();
}

class JobSession {
  readonly #parts: JobSessionOptions;
  readonly #report: (result: JobSessionResult) => void;
  readonly #startTime: number;
  readonly #hostCallAbort = new AbortController();
  #deadline: NodeJS.Timeout | undefined;
  #memoryWatch: Disposable | undefined;
  readonly #answers: HostAnswer[] = [];
  #calls = 0;
  #bytes = 0;
  #abortListener: Disposable | undefined;
  #settled = false;

  constructor(parts: JobSessionOptions, report: (result: JobSessionResult) => void) {
    this.#parts = parts;
    this.#report = report;
    this.#startTime = parts.clock.monotonic();
  }

  start(): void {
    const { runner, clock, readMemory, job, input, op, number } = this.#parts;
    const { limits } = job;
    if (op.signal.aborted) {
      this.#settle(this.#failure('TEMPER_CANCELLED', 'the caller cancelled the call'), true);
      return;
    }
    const duration = Math.max(1, Math.min(limits.durationMilliseconds, remainingMs(op, clock)));
    runner.listener = { frame: (frame) => this.#onFrame(frame), ended: (reason) => this.#crashed(reason) };
    runner.setMaxFrameBytes(
      ESCAPE_FACTOR * Math.max(limits.outputBytes, limits.hostBytes, MAX_MESSAGE) + FRAME_OVERHEAD_BYTES,
    );
    this.#abortListener = onAbort(op.signal, () => this.#end('TEMPER_CANCELLED', 'the caller cancelled the call'));
    this.#deadline = setTimeout(() => {
      this.#end('TEMPER_SANDBOX_TIMEOUT', `the tool did not finish within ${Math.round(duration)} ms and was killed`);
    }, duration + GRACE_MS);
    this.#memoryWatch = watchMemory({ readMemory, pid: runner.pid, memoryBytes: limits.memoryBytes }, () => {
      const limit = Math.floor(limits.memoryBytes / 1_048_576);
      this.#end('TEMPER_SANDBOX_MEMORY', `the tool used more than its limit of ${limit} MiB and was killed`);
    });
    runner.send({
      type: 'run',
      job: number,
      source: job.source,
      input,
      apis: job.apis,
      durationMilliseconds: duration,
      memoryBytes: limits.memoryBytes,
      outputBytes: limits.outputBytes,
      hostCalls: limits.hostCalls,
      hostBytes: limits.hostBytes,
      startTime: job.timeAndRandomness?.startTime ?? clock.now().getTime(),
      seed: job.timeAndRandomness?.seed ?? randomBytes(SEED_BYTES).toString('hex'),
    });
  }

  #onFrame(frame: RunnerFrame): void {
    if (frame.type === 'call' && frame.job === this.#parts.number) {
      void this.#callHost(frame.call, frame.api, frame.input);
      return;
    }
    if (frame.type !== 'done' || frame.job !== this.#parts.number) {
      this.#parts.runner.kill('the runner violated the protocol');
      return;
    }
    if (frame.ok) {
      const outcome = this.#readOutput(frame.output, frame.usage);
      this.#settle(outcome, true);
      return;
    }
    const message = printable(frame.message, MAX_MESSAGE).slice(0, MAX_MESSAGE);
    this.#settle({ ok: false, code: frame.code, message, usage: frame.usage }, REUSABLE_FAILURES.has(frame.code));
  }

  #readOutput(text: string, usage: JobUsage): JobOutcome {
    const parsed = parseOutput(text, this.#parts.job.limits.outputBytes);
    if ('value' in parsed) return { ok: true, output: parsed.value, usage };
    return { ok: false, ...parsed, usage };
  }

  async #callHost(call: number, api: ForwardedApi, input: string): Promise<void> {
    const { runner, job, host, op, number } = this.#parts;
    this.#calls += 1;
    this.#bytes += input.length;
    if (!job.apis.includes(api) || call !== this.#calls || this.#overBudget()) {
      this.#end('TEMPER_SANDBOX_CALL_BUDGET', 'the tool exceeded its budget for host calls');
      return;
    }
    try {
      const value = await host.call(api, parseUntrustedJson(input), {
        signal: AbortSignal.any([op.signal, this.#hostCallAbort.signal]),
        deadline: Math.min(op.deadline, this.#startTime + job.limits.durationMilliseconds),
        key: `${op.key}/${call}`,
      });
      if (this.#settled) return;
      const time = this.#recordAnswer(call);
      runner.send({ type: 'answer', job: number, call, time, ok: true, value: JSON.stringify(value) });
    } catch (error) {
      if (this.#settled) return;
      const time = this.#recordAnswer(call);
      const [code, message] = isTemperError(error)
        ? [error.code, messageOf(error)]
        : (['TEMPER_INTERNAL', 'the host could not answer'] as const);
      runner.send({
        type: 'answer',
        job: number,
        call,
        time,
        ok: false,
        code,
        message: printable(message, MAX_MESSAGE),
      });
    }
  }

  /** The time that guest code gets with this answer. */
  #recordAnswer(call: number): number {
    const { job, clock } = this.#parts;
    const time = job.timeAndRandomness?.answerTimes?.[this.#answers.length] ?? clock.now().getTime();
    this.#answers.push({ call, time });
    return time;
  }

  #overBudget(): boolean {
    const { limits } = this.#parts.job;
    return this.#calls > limits.hostCalls || this.#bytes > limits.hostBytes;
  }

  #crashed(reason: string): void {
    this.#settle(this.#failure('TEMPER_SANDBOX_CRASHED', `the process of the tool ended: ${reason}`), false);
  }

  /** Settles the session; `reusable: false` makes the caller kill the runner. The exit comes later and is then ignored. */
  #end(code: SandboxFailure, message: string): void {
    this.#settle(this.#failure(code, message), false);
  }

  #failure(code: SandboxFailure, message: string): JobOutcome & { ok: false } {
    const milliseconds = this.#parts.clock.monotonic() - this.#startTime;
    return { ok: false, code, message, usage: { milliseconds, heapBytes: 0, hostCalls: this.#calls } };
  }

  #settle(outcome: JobOutcome, reusable: boolean): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#deadline);
    this.#memoryWatch?.[Symbol.dispose]();
    this.#abortListener?.[Symbol.dispose]();
    this.#hostCallAbort.abort();
    if (this.#answers.length > 0) outcome.usage.answers = this.#answers;
    this.#report({ outcome, reusable });
  }
}
