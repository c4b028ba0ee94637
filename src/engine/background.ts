/** Work nobody waits for at once: promotions under way, and promotions that wait for a person. */
export class Background {
  readonly #running = new Set<Promise<void>>();
  readonly #lifetime = new AbortController();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Aborted when the engine stops. */
  get signal(): AbortSignal {
    return this.#lifetime.signal;
  }

  /** Work that ends by itself; `settled` waits for it. */
  run(work: () => Promise<void>): void {
    const running = this.#guarded(work).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Work that waits for a person, who may never come; only `stop` ends it. */
  wait(work: () => Promise<void>): void {
    void this.#guarded(work);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async stop(): Promise<void> {
    this.#lifetime.abort(new DOMException('the engine stops', 'AbortError'));
    await this.settled();
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#lifetime.signal.aborted) this.#onError(error);
    }
  }
}
