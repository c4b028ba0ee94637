/** Runs asynchronous work one at a time, in the order of the calls. A failure rejects only its own call, whose result may be ignored. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();
  #size = 0;

  /** The number of calls of `run` that have not finished. */
  get size(): number {
    return this.#size;
  }

  /** The result of `work`, which starts when all earlier work has ended. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#size += 1;
    const result = this.#tail.then(work).finally(() => {
      this.#size -= 1;
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Resolves when all work so far has ended, also when it failed. */
  async idle(): Promise<void> {
    await this.#tail;
  }
}
