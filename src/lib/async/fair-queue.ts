/** Runs asynchronous work, by default one at a time. Keys take turns, so a key with much work waits for itself. */
export class FairQueue {
  readonly #limit: number;
  /** Waiting work by key, in the order of the turns. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #running = 0;

  /** At most `limit` works run at the same time. */
  constructor(limit = 1) {
    this.#limit = limit;
  }

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
    if (this.#running >= this.#limit || next === undefined) return;
    const [key, turns] = next;
    const turn = turns.shift();
    this.#waiting.delete(key);
    // Behind the other keys.
    if (turns.length > 0) this.#waiting.set(key, turns);
    this.#running += 1;
    void turn?.().finally(() => {
      this.#running -= 1;
      this.#next();
    });
  }
}
