import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ForwardedApi, HostCalls, Job, JobOutcome } from '../../sandbox/port.ts';
import { resultOf } from '../socket/results.ts';
import type { AgentFrame, SandboxFrame } from '../socket/protocol.ts';

export interface RemoteJobDeps {
  id: number;
  job: Job;
  host: HostCalls;
  op: CallOptions;
  /** False when the frame is too large. */
  send: (frame: AgentFrame) => boolean;
  /** Called exactly once. */
  onOutcome: (outcome: JobOutcome) => void;
}

/** Bytes that the frames of a job may have in addition to its output, and to the inputs of its host calls. */
const OVERHEAD_BYTES = 65_536;

/** One job in the sandbox container. Host calls are authorized and counted in this process, because the sandbox is untrusted. */
export class RemoteJob {
  readonly #deps: RemoteJobDeps;
  readonly #finished = new AbortController();
  #hostCalls = 0;
  #hostBytes = 0;

  constructor(deps: RemoteJobDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { id, job, send } = this.#deps;
    if (this.#finished.signal.aborted) return;
    let fits: boolean;
    try {
      fits = send({ type: 'run', id, job });
    } catch {
      // The input is nested too deeply to be serialized.
      fits = false;
    }
    if (!fits) this.#finishWithError('TEMPER_SANDBOX_INPUT_TOO_LARGE', 'the input is too large or nested too deeply');
  }

  cancel(): void {
    this.#deps.send({ type: 'cancel', id: this.#deps.id });
    this.#finishWithError('TEMPER_CANCELLED', 'the caller cancelled the call');
  }

  handleFrame(frame: SandboxFrame, bytes: number): boolean {
    if (frame.type === 'call') return this.#onHostCall(frame, bytes);
    if (frame.type !== 'outcome') return false;
    if (frame.outcome.ok && bytes > this.#deps.job.limits.outputBytes + OVERHEAD_BYTES) {
      this.#finishWithError('TEMPER_SANDBOX_OUTPUT_TOO_LARGE', 'the result is larger than its limit');
    } else this.#finish(frame.outcome);
    return true;
  }

  connectionLost(reason: string): void {
    this.#finishWithError('TEMPER_SANDBOX_CRASHED', `the connection to the sandbox container was lost: ${reason}`);
  }

  #onHostCall({ call, api, input }: Extract<SandboxFrame, { type: 'call' }>, bytes: number): boolean {
    const { job, op } = this.#deps;
    this.#hostCalls += 1;
    this.#hostBytes += bytes;
    if (this.#hostBytes > job.limits.hostBytes + OVERHEAD_BYTES) {
      const message = `the host calls of the tool have more than the ${job.limits.hostBytes} bytes allowed`;
      this.#finishWithError('TEMPER_SANDBOX_CALL_BUDGET', message);
      return true;
    }
    if (call !== this.#hostCalls || !job.apis.includes(api) || this.#hostCalls > job.limits.hostCalls) return false;
    const callOp: CallOptions = {
      signal: AbortSignal.any([op.signal, this.#finished.signal]),
      deadline: op.deadline,
      key: `${op.key}/${call}`,
    };
    void this.#answerHostCall(call, api, input, callOp);
    return true;
  }

  async #answerHostCall(call: number, api: ForwardedApi, input: Json, op: CallOptions): Promise<void> {
    const { id, host, send } = this.#deps;
    const answer = await resultOf(() => host.call(api, input, op));
    if (this.#finished.signal.aborted || send({ type: 'answer', id, call, answer })) return;
    const message = 'the response is too large for one frame';
    send({ type: 'answer', id, call, answer: { ok: false, code: 'TEMPER_FILE_FAILED', message } });
  }

  #finishWithError(code: (JobOutcome & { ok: false })['code'], message: string): void {
    const usage = { milliseconds: 0, heapBytes: 0, hostCalls: this.#hostCalls };
    this.#finish({ ok: false, code, message, usage });
  }

  #finish(outcome: JobOutcome): void {
    if (this.#finished.signal.aborted) return;
    this.#finished.abort();
    this.#deps.onOutcome(outcome);
  }
}
