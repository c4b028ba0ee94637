import type { Json } from '../../lib/json.ts';
import type { Op } from '../../lib/operation.ts';
import type { HostCalls, Job, Outcome } from '../../sandbox/port.ts';
import { answerOf } from '../socket/answers.ts';
import type { AgentFrame, SandboxFrame } from '../socket/protocol.ts';

export interface RemoteJobParts {
  id: number;
  job: Job;
  host: HostCalls;
  op: Op;
  /** False when the frame is too large. */
  send: (frame: AgentFrame) => boolean;
  /** Told once. */
  done: (outcome: Outcome) => void;
}

/** What a result may need beyond its output. */
const OVERHEAD_BYTES = 65_536;

/** One job in the sandbox container. Its host calls are decided here, and counted here too: the sandbox may lie. */
export class RemoteJob {
  readonly #parts: RemoteJobParts;
  readonly #ended = new AbortController();
  #calls = 0;

  constructor(parts: RemoteJobParts) {
    this.#parts = parts;
  }

  start(): void {
    const { id, job, send } = this.#parts;
    if (this.#parts.op.signal.aborted) {
      this.withdraw();
      return;
    }
    let fits: boolean;
    try {
      fits = send({ type: 'run', id, job });
    } catch {
      // Nested so deeply that it cannot be written.
      fits = false;
    }
    if (!fits) this.#fail('TEMPER_SANDBOX_INPUT_TOO_LARGE', 'the input is too large or nested too deeply');
  }

  withdraw(): void {
    this.#parts.send({ type: 'cancel', id: this.#parts.id });
    this.#fail('TEMPER_CANCELLED', 'the caller withdrew the call');
  }

  take(frame: SandboxFrame, bytes: number): boolean {
    if (frame.type === 'call') return this.#callHost(frame);
    if (frame.type !== 'outcome') return false;
    if (frame.outcome.ok && bytes > this.#parts.job.limits.outputBytes + OVERHEAD_BYTES) {
      this.#fail('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'the result is larger than its limit');
    } else this.#done(frame.outcome);
    return true;
  }

  gone(reason: string): void {
    this.#fail('TEMPER_SANDBOX_CRASHED', `the sandbox container was lost: ${reason}`);
  }

  #callHost({ call, api, input }: Extract<SandboxFrame, { type: 'call' }>): boolean {
    const { job, op } = this.#parts;
    this.#calls += 1;
    if (call !== this.#calls || !job.apis.includes(api) || this.#calls > job.limits.hostCalls) return false;
    const inner: Op = {
      signal: AbortSignal.any([op.signal, this.#ended.signal]),
      deadline: op.deadline,
      key: `${op.key}/${call}`,
    };
    void this.#answer(call, api, input, inner);
    return true;
  }

  async #answer(call: number, api: 'fetch' | 'fs.readFile', input: Json, op: Op): Promise<void> {
    const { id, host, send } = this.#parts;
    const answer = await answerOf(() => host.call(api, input, op));
    if (this.#ended.signal.aborted || send({ type: 'answer', id, call, answer })) return;
    const message = 'the answer does not fit into a frame';
    send({ type: 'answer', id, call, answer: { ok: false, code: 'TEMPER_FILE_FAILED', message } });
  }

  #fail(code: (Outcome & { ok: false })['code'], message: string): void {
    const usage = { milliseconds: 0, heapBytes: 0, hostCalls: this.#calls };
    this.#done({ ok: false, code, message, usage });
  }

  #done(outcome: Outcome): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#parts.done(outcome);
  }
}
