import { onAbort } from '../../../lib/async/abort.ts';
import { type CallOptions, remainingMs } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { SandboxFailure } from '../../../sandbox/port.ts';
import type {
  RunOutcome,
  SessionAnswer,
  SessionCall,
  SessionLimits,
  SessionRequest,
  SessionRun,
  SessionRunner,
} from '../../../sandbox/session-port.ts';
import type { AgentFrame, SandboxFrame } from '../../socket/protocol.ts';

/** Bytes that the frames of a run may have in addition to the values in them. */
const OVERHEAD_BYTES = 65_536;
/** Time after the end of a run in which the sandbox container may report it. */
const GRACE_MS = 2_000;

interface RemoteRunDeps {
  clock: Clock;
  limits: SessionLimits;
  call: SessionCall;
  op: CallOptions;
  /** False when the frame is too large. */
  send: (frame: AgentFrame) => boolean;
}

/** One run of code in the sandbox container. Its calls are counted in this process, because the sandbox is untrusted. */
class RemoteRun {
  readonly id: number;
  readonly outcome = Promise.withResolvers<RunOutcome>();
  readonly #deps: RemoteRunDeps;
  readonly #finished = new AbortController();
  #calls = 0;
  #bytes = 0;

  constructor(id: number, deps: RemoteRunDeps) {
    this.id = id;
    this.#deps = deps;
  }

  handleFrame(frame: SandboxFrame, bytes: number): boolean {
    if (frame.type === 'invoke') return this.#onCall(frame.request, bytes);
    if (frame.type !== 'executed') return false;
    const { outputBytes, snapshotBytes, logBytes } = this.#deps.limits;
    const isTooLarge = bytes > 2 * outputBytes + snapshotBytes + logBytes + OVERHEAD_BYTES;
    if (isTooLarge) this.end('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'the outcome is larger than its limits');
    else this.#finish(frame.outcome);
    return true;
  }

  connectionLost(reason: string): void {
    this.end('TEMPER_SANDBOX_CRASHED', `the connection to the sandbox container was lost: ${reason}`);
  }

  /** Ends the run without a snapshot of `memory`. */
  end(code: SandboxFailure, message: string): void {
    const usage = { guestMilliseconds: 0, heapBytes: 0, calls: this.#calls };
    this.#finish({ ok: false, code, message, log: '', isLogCut: false, unawaited: 0, usage });
  }

  #onCall(request: SessionRequest, bytes: number): boolean {
    const { limits } = this.#deps;
    this.#calls += 1;
    this.#bytes += bytes;
    if (request.call !== this.#calls || request.call > limits.calls) return false;
    if (this.#bytes > limits.callBytes + OVERHEAD_BYTES) {
      this.end('TEMPER_SANDBOX_CALL_BUDGET', `the calls have more than the ${limits.callBytes} bytes allowed`);
    } else void this.#answer(request);
    return true;
  }

  async #answer(request: SessionRequest): Promise<void> {
    const { op, call, send, clock } = this.#deps;
    const signal = AbortSignal.any([op.signal, this.#finished.signal]);
    const time = clock.now().getTime();
    const failed: SessionAnswer = { time, ok: false, code: 'TEMPER_INTERNAL', message: 'the host could not answer' };
    const answer = await call(request, { ...op, signal, key: `${op.key}/${request.call}` }).catch(() => failed);
    const reply = (content: SessionAnswer): boolean =>
      this.#finished.signal.aborted || send({ type: 'reply', id: this.id, call: request.call, answer: content });
    if (!reply(answer)) {
      const message = 'the answer is too large for one frame';
      reply({ time: answer.time, ok: false, code: 'TEMPER_SANDBOX_OUTPUT_TOO_LARGE', message });
    }
  }

  #finish(outcome: RunOutcome): void {
    if (this.#finished.signal.aborted) return;
    this.#finished.abort();
    this.outcome.resolve(outcome);
  }
}

/** What a session needs of the connection to the sandbox container. */
export interface SessionLink {
  readonly isOpen: boolean;
  send(frame: AgentFrame): boolean;
  /** Registers a run, which gets the frames with its id. */
  add(create: (id: number) => RemoteRun): RemoteRun;
  remove(id: number): void;
}

/** A session whose process runs in the sandbox container. */
export class RemoteSession implements SessionRunner {
  readonly #session: number;
  readonly #limits: SessionLimits;
  readonly #clock: Clock;
  readonly #link: SessionLink;
  #isClosed = false;

  constructor(session: number, limits: SessionLimits, clock: Clock, link: SessionLink) {
    this.#session = session;
    this.#limits = limits;
    this.#clock = clock;
    this.#link = link;
  }

  get isOpen(): boolean {
    return !this.#isClosed && this.#link.isOpen;
  }

  async run(run: SessionRun, call: SessionCall, op: CallOptions): Promise<RunOutcome> {
    const [limits, clock, link] = [this.#limits, this.#clock, this.#link];
    const send = (frame: AgentFrame): boolean => link.send(frame);
    const running = link.add((id) => new RemoteRun(id, { clock, limits, call, op, send }));
    const { id } = running;
    const stop = (code: SandboxFailure, message: string): void => {
      link.send({ type: 'cancel', id });
      running.end(code, message);
    };
    const duration = Math.min(limits.runMilliseconds, remainingMs(op, clock)) + GRACE_MS;
    const timer = setTimeout(() => stop('TEMPER_SANDBOX_TIMEOUT', 'the code did not end in time'), duration);
    using _cancellation = onAbort(op.signal, () => stop('TEMPER_CANCELLED', 'the caller cancelled the run'));
    try {
      if (!this.isOpen) running.end('TEMPER_SANDBOX_CRASHED', 'the session has ended');
      else if (!link.send({ type: 'execute', id, session: this.#session, run })) {
        running.end('TEMPER_SANDBOX_INPUT_TOO_LARGE', 'the code is too large');
      }
      const outcome = await running.outcome.promise;
      if (outcome.memory === undefined) await this.close();
      return outcome;
    } finally {
      clearTimeout(timer);
      link.remove(id);
    }
  }

  async close(): Promise<void> {
    if (this.isOpen) this.#link.send({ type: 'close', id: this.#session });
    this.#isClosed = true;
  }
}
