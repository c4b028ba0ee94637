/** Background tasks of an engine: running promotions, and promotions that await an approval. */
export class BackgroundTasks {
  readonly #tasks = new Set<Promise<void>>();
  readonly #lifetime = new AbortController();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Aborted when the engine stops. */
  get signal(): AbortSignal {
    return this.#lifetime.signal;
  }

  /** Starts a task that ends by itself; `settled` and `stop` wait for it. */
  run(work: () => Promise<void>): void {
    const running = this.#reportErrors(work).finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Starts a task that awaits an approval and may never end; only `stop` aborts it. `settled` does not wait for it. */
  runUntilStopped(work: () => Promise<void>): void {
    void this.#reportErrors(work);
  }

  /** Resolves when all tasks started with `run` have ended. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  /** Aborts `signal` and waits for the tasks started with `run`. */
  async stop(): Promise<void> {
    this.#lifetime.abort(new DOMException('the engine stops', 'AbortError'));
    await this.settled();
  }

  async #reportErrors(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#lifetime.signal.aborted) this.#onError(error);
    }
  }
}
