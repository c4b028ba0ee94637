/** Runs work one after the other, in the order of the calls. A failure does not stop the queue. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();
  #unfinished = 0;

  run<T>(work: () => Promise<T>): Promise<T> {
    this.#unfinished += 1;
    const result = this.#last.then(work, work).finally(() => {
      this.#unfinished -= 1;
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  get isIdle(): boolean {
    return this.#unfinished === 0;
  }
}
