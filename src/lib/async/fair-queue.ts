/** Runs asynchronous work one at a time. Keys take turns, so a key with much work waits for itself. */
export class FairQueue {
  /** Waiting work by key, in the order of the turns. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #running = false;

  /** The result of `work`, which starts when it is the turn of the key, after the earlier work of the same key. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const turn = async (): Promise<void> => {
      try {
        resolve(await work());
      } catch (error) {
        reject(error);
      }
    };
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, [turn]);
    else waiting.push(turn);
    this.#next();
    return promise;
  }

  #next(): void {
    const [next] = this.#waiting;
    if (this.#running || next === undefined) return;
    const [key, turns] = next;
    const turn = turns.shift();
    this.#waiting.delete(key);
    // Behind the other keys.
    if (turns.length > 0) this.#waiting.set(key, turns);
    this.#running = true;
    void turn?.().finally(() => {
      this.#running = false;
      this.#next();
    });
  }
}
