import type { Worker, WorkerOptions } from 'node:worker_threads';
import { onAbort } from '../../../lib/async/abort.ts';
import type { ArtifactVetting } from '../../../forge/static-gates.ts';

export type StartThread = (options: WorkerOptions) => Worker;

/** The most that one thread may hold. A thread beyond it ends, and the gateway goes on. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** Why a thread gave no answer. */
export type ThreadFailure = 'timeout' | 'failed' | 'cancelled';

/** For a thread to load its program, which is not the fault of an artifact. */
const START_TIMEOUT_MS = 30_000;

/** A thread that vets one artifact at a time. After a failure it must be closed; the next artifact starts another worker. */
export class VettingThread {
  readonly #start: StartThread;
  #worker: Worker | undefined;

  constructor(start: StartThread) {
    this.#start = start;
  }

  /** Resolves when the thread can take an artifact; never rejects. */
  async ready(signal: AbortSignal): Promise<ThreadFailure | undefined> {
    if (this.#worker !== undefined) return undefined;
    const worker = this.#open();
    this.#worker = worker;
    const answer = await this.#answer(worker, START_TIMEOUT_MS, signal);
    return isFailure(answer) ? answer : undefined;
  }

  /** The vetting of an artifact, as JSON text; never rejects. */
  async vet(text: string, timeoutMs: number, signal: AbortSignal): Promise<ArtifactVetting | ThreadFailure> {
    const worker = this.#worker;
    if (worker === undefined) return 'failed';
    const answer = this.#answer(worker, timeoutMs, signal);
    worker.postMessage(text);
    return answer;
  }

  /** Ends the thread, also in the midst of its work. Resolves when it holds no processor any more. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.ref();
    await worker?.terminate();
  }

  /** The next message of the thread. */
  async #answer(worker: Worker, timeoutMs: number, signal: AbortSignal): Promise<ArtifactVetting | ThreadFailure> {
    const { promise, resolve } = Promise.withResolvers<ArtifactVetting | ThreadFailure>();
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
    // A thread may also fail between two artifacts; the next artifact finds that out.
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
