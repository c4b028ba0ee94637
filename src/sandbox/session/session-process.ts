/** The process of one session: a runner that no other session and no job ever uses. */
import type { CallOptions } from '../../lib/call-options.ts';
import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { MemoryReader } from '../memory-usage.ts';
import { requireSafeVersions } from '../min-engine-version.ts';
import { MAX_SOURCE_BYTES, type RunnerFrame } from '../protocol.ts';
import type { RunnerCommand } from '../runner-command.ts';
import { RunnerProcess } from '../runner-process.ts';
import type { RunOutcome, SessionCall, SessionOptions, SessionRun, SessionRunner } from '../session-port.ts';
import { startCodeRun } from './code-run.ts';

/** Time from the start of the process until it takes its first run. */
const OPEN_TIMEOUT_MS = 10_000;

export interface SessionProcessDeps {
  clock: Clock;
  command: RunnerCommand;
  /** The frame with the program of the runner. */
  program: Promise<Buffer>;
  readMemory: MemoryReader;
}

export class SessionProcess implements SessionRunner {
  readonly #deps: SessionProcessDeps;
  readonly #options: SessionOptions;
  readonly #runner: RunnerProcess;
  #isOpen = true;
  #isRunning = false;
  #runs = 0;

  private constructor(deps: SessionProcessDeps, options: SessionOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#runner = new RunnerProcess(deps.command, { frame: () => undefined, ended: () => undefined });
  }

  /** Throws TEMPER_SANDBOX_UNAVAILABLE or TEMPER_CANCELLED. */
  static async open(deps: SessionProcessDeps, options: SessionOptions, op: CallOptions): Promise<SessionProcess> {
    const session = new SessionProcess(deps, options);
    try {
      await session.#open(op);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get pid(): number | undefined {
    return this.#runner.pid;
  }

  async run(run: SessionRun, call: SessionCall, op: CallOptions): Promise<RunOutcome> {
    const refusal = this.#refusal(run, op);
    if (refusal !== undefined) return refusal;
    this.#isRunning = true;
    this.#runs += 1;
    const { clock, readMemory } = this.#deps;
    const { limits } = this.#options;
    const parts = { runner: this.#runner, clock, readMemory, limits, run, call, op, number: this.#runs };
    const outcome = await new Promise<RunOutcome>((resolve) => {
      startCodeRun(parts, (settled) => {
        if (settled.memory === undefined) this.#kill('the run left the runner unusable');
        else this.#listenBetweenRuns();
        resolve(settled);
      });
    });
    this.#isRunning = false;
    return outcome;
  }

  async close(): Promise<void> {
    this.#kill('the session is closed');
    await this.#runner.exited;
  }

  #refusal({ code }: SessionRun, op: CallOptions): RunOutcome | undefined {
    const base = {
      log: '',
      isLogCut: false,
      unawaited: 0,
      usage: { guestMilliseconds: 0, heapBytes: 0, calls: 0 },
      ok: false as const,
    };
    if (!this.#isOpen)
      return { ...base, code: 'TEMPER_SANDBOX_CRASHED', message: 'the runner of the session has ended' };
    if (this.#isRunning)
      return { ...base, code: 'TEMPER_SANDBOX_UNAVAILABLE', message: 'the session runs code already' };
    if (op.signal.aborted) return { ...base, code: 'TEMPER_CANCELLED', message: 'the caller cancelled the run' };
    if (Buffer.byteLength(code) <= MAX_SOURCE_BYTES) return undefined;
    const message = `the code is larger than ${MAX_SOURCE_BYTES} bytes`;
    return { ...base, code: 'TEMPER_SANDBOX_INPUT_TOO_LARGE', message };
  }

  async #open(op: CallOptions): Promise<void> {
    const runner = this.#runner;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (reason: string): void => {
      const details = { stderr: printable(runner.stderr) };
      reject(
        new TemperError('TEMPER_SANDBOX_UNAVAILABLE', `the runner of the session does not start: ${reason}`, {
          details,
        }),
      );
    };
    runner.listener = { frame: (frame) => this.#onOpening(frame, resolve), ended: fail };
    const watchdog = setTimeout(() => this.#kill('it was not ready in time'), OPEN_TIMEOUT_MS);
    using _cancellation = onAbort(op.signal, () =>
      reject(new TemperError('TEMPER_CANCELLED', 'the caller cancelled the start of the session')),
    );
    this.#deps.program.then(
      (bytes) => runner.sendBytes(bytes),
      () => this.#kill('the program of the runner cannot be read'),
    );
    try {
      await promise;
    } finally {
      clearTimeout(watchdog);
    }
    this.#listenBetweenRuns();
  }

  #onOpening(frame: RunnerFrame, onOpened: () => void): void {
    if (frame.type === 'hello') {
      try {
        requireSafeVersions(frame.runtime, frame.engine);
      } catch (error) {
        this.#kill(isTemperError(error) ? error.message : 'its versions cannot be parsed');
      }
    } else if (frame.type === 'ready') {
      const { limits, memory } = this.#options;
      const { memoryBytes, snapshotBytes } = limits;
      this.#runner.send({ type: 'open', memoryBytes, snapshotBytes, memory: JSON.stringify(memory) });
    } else if (frame.type === 'opened') onOpened();
    else this.#kill('it violated the protocol');
  }

  #listenBetweenRuns(): void {
    this.#runner.listener = {
      frame: () => this.#kill('the runner violated the protocol'),
      ended: () => {
        this.#isOpen = false;
      },
    };
  }

  #kill(reason: string): void {
    this.#isOpen = false;
    this.#runner.kill(reason);
  }
}
