import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SandboxFailure } from '../../sandbox/port.ts';
import type {
  RunOutcome,
  SessionAnswer,
  SessionCall,
  SessionOptions,
  SessionRun,
  SessionRunner,
  SessionSandbox,
} from '../../sandbox/session-port.ts';
import type { SandboxFrame } from '../socket/protocol.ts';

/** The calls of a run that wait for the agent container, by their number. */
export type OpenCalls = Map<number, (answer: SessionAnswer) => void>;

/** The sessions of one connection to the agent container. They end with it. */
export class SandboxSessions {
  readonly #sandbox: SessionSandbox;
  readonly #clock: Clock;
  readonly #send: (frame: SandboxFrame) => boolean;
  readonly #runners = new Map<number, SessionRunner>();
  #isEnded = false;

  constructor(sandbox: SessionSandbox, clock: Clock, send: (frame: SandboxFrame) => boolean) {
    this.#sandbox = sandbox;
    this.#clock = clock;
    this.#send = send;
  }

  /** Throws the errors of the sandbox. */
  async open(id: number, options: SessionOptions, op: CallOptions): Promise<void> {
    const runner = await this.#sandbox.openSession(options, op);
    if (this.#isEnded || op.signal.aborted) await runner.close();
    else this.#runners.set(id, runner);
  }

  /** Runs code and sends its outcome. */
  async execute(id: number, session: number, run: SessionRun, calls: OpenCalls, op: CallOptions): Promise<void> {
    const runner = this.#runners.get(session);
    const outcome =
      runner === undefined
        ? failedRun('TEMPER_SANDBOX_CRASHED', 'the session is not open')
        : await runner.run(run, this.#callOf(id, calls), op);
    if (runner?.isOpen === false) this.#runners.delete(session);
    if (this.#send({ type: 'executed', id, outcome })) return;
    const message = 'the outcome is too large for one frame';
    this.#send({ type: 'executed', id, outcome: failedRun('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', message) });
    await this.close(session);
  }

  async close(session: number): Promise<void> {
    const runner = this.#runners.get(session);
    this.#runners.delete(session);
    await runner?.close();
  }

  endAll(): void {
    this.#isEnded = true;
    for (const session of this.#runners.keys()) void this.close(session);
  }

  #callOf(id: number, calls: OpenCalls): SessionCall {
    return async (request) => {
      const { promise, resolve } = Promise.withResolvers<SessionAnswer>();
      calls.set(request.call, resolve);
      if (this.#isEnded) resolve(this.#failed('TEMPER_CANCELLED', 'the agent container disconnected'));
      else if (!this.#send({ type: 'invoke', id, request })) {
        resolve(this.#failed('TEMPER_SANDBOX_INPUT_TOO_LARGE', 'the arguments are too large for one frame'));
      }
      const answer = await promise;
      calls.delete(request.call);
      return answer;
    };
  }

  #failed(code: SandboxFailure, message: string): SessionAnswer {
    return { time: this.#clock.now().getTime(), ok: false, code, message };
  }
}

function failedRun(code: SandboxFailure, message: string): RunOutcome {
  const usage = { guestMilliseconds: 0, heapBytes: 0, calls: 0 };
  return { ok: false, code, message, log: '', isLogCut: false, unawaited: 0, usage };
}
