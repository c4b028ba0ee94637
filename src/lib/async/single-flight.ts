/** Joins concurrent calls with the same key into one. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** The result of the running call of this key; without one, starts `work`. A failure rejects all callers that joined. */
  run(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
