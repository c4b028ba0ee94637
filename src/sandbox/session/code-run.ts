/** One run of code in the process of a session: enforces its limits from outside the untrusted process. */
import { randomBytes } from 'node:crypto';
import { onAbort } from '../../lib/async/abort.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { parseOutput } from '../json-text.ts';
import { type MemoryReader, watchMemory } from '../memory-usage.ts';
import type { SandboxFailure } from '../port.ts';
import { ESCAPE_FACTOR, FRAME_OVERHEAD_BYTES, MAX_MESSAGE, type RunnerFrame } from '../protocol.ts';
import type { RunnerProcess } from '../runner-process.ts';
import type {
  MemorySnapshot,
  RunOutcome,
  RunReport,
  SessionAnswer,
  SessionCall,
  SessionLimits,
  SessionRun,
} from '../session-port.ts';
import type { ExecutedFrame } from './frames.ts';

/** Time after a limit in which the runner may report the timeout itself; then the supervisor kills it. */
const GRACE_MS = 60;
const SEED_BYTES = 16;

export interface CodeRunOptions {
  runner: RunnerProcess;
  clock: Clock;
  readMemory: MemoryReader;
  limits: SessionLimits;
  run: SessionRun;
  call: SessionCall;
  op: CallOptions;
  number: number;
}

/**
 * Runs the code and calls `onSettled` once, synchronously, as soon as the outcome is known. An outcome without a snapshot of `memory`
 * means that the process must be killed.
 */
export function startCodeRun(options: CodeRunOptions, onSettled: (outcome: RunOutcome) => void): void {
  new CodeRun(options, onSettled).start();
}

class CodeRun {
  readonly #options: CodeRunOptions;
  readonly #onSettled: (outcome: RunOutcome) => void;
  readonly #callAbort = new AbortController();
  readonly #disposables = new DisposableStack();
  #deadline = Number.POSITIVE_INFINITY;
  #guestTimer: NodeJS.Timeout | undefined;
  /** When the code started to run; undefined while it waits. */
  #runningSince: number | undefined;
  #guestMs = 0;
  #calls = 0;
  #bytes = 0;
  #answers = 0;
  #isSettled = false;

  constructor(options: CodeRunOptions, onSettled: (outcome: RunOutcome) => void) {
    this.#options = options;
    this.#onSettled = onSettled;
  }

  start(): void {
    const { runner, clock, readMemory, limits, run, op, number } = this.#options;
    const duration = Math.max(1, Math.min(limits.runMilliseconds, remainingMs(op, clock)));
    this.#deadline = clock.monotonic() + duration;
    runner.listener = {
      frame: (frame) => this.#onFrame(frame),
      ended: (reason) => this.#end('TEMPER_SANDBOX_CRASHED', `the process of the code ended: ${reason}`),
    };
    runner.setMaxFrameBytes(maxFrameBytes(limits));
    this.#disposables.use(onAbort(op.signal, () => this.#end('TEMPER_CANCELLED', 'the caller cancelled the run')));
    this.#disposables.adopt(
      setTimeout(() => this.#timedOut(`the code did not end within ${Math.round(duration)} ms`), duration),
      clearTimeout,
    );
    this.#disposables.use(
      watchMemory({ readMemory, pid: runner.pid, memoryBytes: limits.memoryBytes }, () => {
        const limit = Math.floor(limits.memoryBytes / 1_048_576);
        this.#end('TEMPER_SANDBOX_MEMORY', `the code used more than its limit of ${limit} MiB and was killed`);
      }),
    );
    if (this.#isSettled) return;
    const { startTime, seed } = run.timeAndRandomness ?? {
      startTime: clock.now().getTime(),
      seed: randomBytes(SEED_BYTES).toString('hex'),
    };
    const { guestMilliseconds, outputBytes, logBytes, calls, callBytes } = limits;
    const bounds = { guestMilliseconds, outputBytes, logBytes, calls, callBytes };
    runner.send({ type: 'execute', run: number, code: run.code, ...bounds, startTime, seed });
    this.#startGuestTime();
  }

  #onFrame(frame: RunnerFrame): void {
    const { runner, number } = this.#options;
    if ('run' in frame && frame.run === number) {
      if (frame.type === 'invoke') void this.#callHost(frame.call, frame.name, frame.input);
      else if (frame.type === 'waiting') this.#onWaiting(frame.answers);
      else this.#settle(this.#outcomeOf(frame));
      return;
    }
    runner.kill('the runner violated the protocol');
  }

  /** The code has got all answers and waits for the next one. */
  #onWaiting(answers: number): void {
    if (answers !== this.#answers || this.#runningSince === undefined) return;
    this.#guestMs += this.#options.clock.monotonic() - this.#runningSince;
    this.#runningSince = undefined;
    clearTimeout(this.#guestTimer);
  }

  #startGuestTime(): void {
    if (this.#runningSince !== undefined) return;
    const { clock, limits } = this.#options;
    this.#runningSince = clock.monotonic();
    const remaining = Math.max(0, limits.guestMilliseconds - this.#guestMs) + GRACE_MS;
    const message = `the code ran for more than ${limits.guestMilliseconds} ms, waiting excluded`;
    this.#guestTimer = setTimeout(() => this.#timedOut(message), remaining);
  }

  #timedOut(message: string): void {
    this.#end('TEMPER_SANDBOX_TIMEOUT', `${message} and was killed`);
  }

  async #callHost(call: number, name: string, text: string): Promise<void> {
    const { runner, limits, op, number, call: host } = this.#options;
    this.#calls += 1;
    this.#bytes += text.length;
    if (call !== this.#calls || call > limits.calls || this.#bytes > limits.callBytes) {
      this.#end('TEMPER_SANDBOX_CALL_BUDGET', 'the code exceeded its budget for calls');
      return;
    }
    const answer = await this.#answerOf(text, (input) =>
      host(
        { call, name, input },
        {
          signal: AbortSignal.any([op.signal, this.#callAbort.signal]),
          deadline: Math.min(op.deadline, this.#deadline),
          key: `${op.key}/${call}`,
        },
      ),
    );
    if (this.#isSettled) return;
    this.#answers += 1;
    this.#startGuestTime();
    const { time } = answer;
    if (answer.ok) {
      runner.send({ type: 'answer', job: number, call, time, ok: true, value: JSON.stringify(answer.value) });
    } else {
      const message = printable(answer.message, MAX_MESSAGE);
      runner.send({ type: 'answer', job: number, call, time, ok: false, code: answer.code, message });
    }
  }

  async #answerOf(text: string, work: (input: Json) => Promise<SessionAnswer>): Promise<SessionAnswer> {
    const time = this.#options.clock.now().getTime();
    const parsed = parseOutput(text, this.#options.limits.callBytes);
    if (!('value' in parsed)) return { time, ok: false, code: 'TEMPER_TOOL_INPUT_INVALID', message: parsed.message };
    try {
      return await work(parsed.value);
    } catch {
      return { time, ok: false, code: 'TEMPER_INTERNAL', message: 'the host could not answer' };
    }
  }

  #outcomeOf(frame: ExecutedFrame): RunOutcome {
    const { limits } = this.#options;
    const report = reportOf(frame, limits);
    const memory = memoryOf(frame, limits);
    const finished = frame.finished === undefined ? undefined : parseOutput(frame.finished, limits.outputBytes);
    const members = {
      ...report,
      ...(memory === undefined ? {} : { memory }),
      ...(finished !== undefined && 'value' in finished ? { finished: { value: finished.value } } : {}),
    };
    if (!frame.ok) return { ...members, ok: false, code: frame.code, message: bounded(frame.message) };
    if (frame.output === undefined) return { ...members, ok: true };
    const output = parseOutput(frame.output, limits.outputBytes);
    return 'value' in output ? { ...members, ok: true, value: output.value } : { ...members, ok: false, ...output };
  }

  /** Settles the run without a snapshot. The exit of the process comes later and is then ignored. */
  #end(code: SandboxFailure, message: string): void {
    const usage = { guestMilliseconds: this.#guestMs, heapBytes: 0, calls: this.#calls };
    this.#settle({ ok: false, code, message, log: '', isLogCut: false, unawaited: 0, usage });
  }

  #settle(outcome: RunOutcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#guestTimer);
    this.#disposables.dispose();
    this.#callAbort.abort();
    this.#onSettled(outcome);
  }
}

function maxFrameBytes({ outputBytes, snapshotBytes, logBytes, callBytes }: SessionLimits): number {
  const report = 2 * outputBytes + snapshotBytes + logBytes;
  return ESCAPE_FACTOR * Math.max(report, callBytes, MAX_MESSAGE) + FRAME_OVERHEAD_BYTES;
}

function reportOf({ log, isLogCut, unawaited, usage }: ExecutedFrame, { logBytes }: SessionLimits): RunReport {
  const isTooLong = log.length > logBytes;
  return { log: isTooLong ? log.slice(0, logBytes) : log, isLogCut: isLogCut || isTooLong, unawaited, usage };
}

function memoryOf({ memory, omitted }: ExecutedFrame, { snapshotBytes }: SessionLimits): MemorySnapshot | undefined {
  if (memory === undefined) return undefined;
  const parsed = parseOutput(memory, snapshotBytes);
  if (!('value' in parsed) || !isJsonObject(parsed.value)) return undefined;
  const shown = omitted.map(({ name, reason }) => ({ name: bounded(name), reason: bounded(reason) }));
  return { values: parsed.value, omitted: shown };
}

function bounded(text: string): string {
  return printable(text, MAX_MESSAGE).slice(0, MAX_MESSAGE);
}
