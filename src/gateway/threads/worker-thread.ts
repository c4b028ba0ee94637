import type { Worker, WorkerOptions } from 'node:worker_threads';
import { onAbort } from '../../lib/async/abort.ts';

export type StartThread = (options: WorkerOptions) => Worker;

/** The most that one thread may hold. A thread beyond it ends, and the gateway goes on. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** Why a thread gave no answer. */
export type ThreadFailure = 'timeout' | 'failed' | 'cancelled';

/** For a thread to load its program, which is not the fault of its input. */
const START_TIMEOUT_MS = 30_000;
/** A thread keeps the heap that its largest input needed, and what its program takes. One starts in a tenth of a second. */
const IDLE_MS = 10_000;

/**
 * A thread that answers one input at a time, each with one message; its program posts a message when it is loaded. After a failure it
 * must be closed, and without work it closes itself; the next input starts another worker.
 */
export class WorkerThread<Input, Output extends object> {
  readonly #start: StartThread;
  readonly #idleMs: number;
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(start: StartThread, idleMs: number = IDLE_MS) {
    this.#start = start;
    this.#idleMs = idleMs;
  }

  /** Resolves when the thread can take an input; never rejects. */
  async ready(signal: AbortSignal): Promise<ThreadFailure | undefined> {
    clearTimeout(this.#idle);
    if (this.#worker !== undefined) return undefined;
    const worker = this.#open();
    this.#worker = worker;
    const answer = await this.#answer(worker, START_TIMEOUT_MS, signal);
    return isFailure(answer) ? answer : undefined;
  }

  /** The answer to an input; never rejects. */
  async run(input: Input, timeoutMs: number, signal: AbortSignal): Promise<Output | ThreadFailure> {
    const worker = this.#worker;
    if (worker === undefined) return 'failed';
    const answer = this.#answer(worker, timeoutMs, signal);
    worker.postMessage(input);
    await answer;
    this.#idle = setTimeout(() => void this.close(), this.#idleMs).unref();
    return answer;
  }

  /** Ends the thread, also in the midst of its work. Resolves when it holds no processor any more. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.ref();
    await worker?.terminate();
  }

  /** The next message of the thread. */
  async #answer(worker: Worker, timeoutMs: number, signal: AbortSignal): Promise<Output | ThreadFailure> {
    const { promise, resolve } = Promise.withResolvers<Output | ThreadFailure>();
    const failed = (): void => resolve('failed');
    worker.once('message', resolve).once('error', failed).once('exit', failed);
    const timer = setTimeout(() => resolve('timeout'), timeoutMs);
    using _cancellation = onAbort(signal, () => resolve('cancelled'));
    worker.ref();
    const answer = await promise;
    clearTimeout(timer);
    worker.off('message', resolve).off('error', failed).off('exit', failed);
    worker.unref();
    return answer;
  }

  #open(): Worker {
    // Nothing of the environment of the gateway: a thread needs none of it.
    const worker = this.#start({ resourceLimits: RESOURCE_LIMITS, env: {}, execArgv: [] });
    // A thread may also fail between two inputs; the next one finds that out.
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
}

export function isFailure(answer: unknown): answer is ThreadFailure {
  return answer === 'timeout' || answer === 'failed' || answer === 'cancelled';
}
