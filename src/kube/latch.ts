/** A state that is reached once, such as "synced" or "elected". */
export class Latch {
  readonly #waiting = new Set<() => void>();
  #isOpen = false;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** Resolves when the latch is open; rejects with the reason of the signal when that aborts first. */
  opened(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isOpen) {
        resolve();
        return;
      }
      signal.throwIfAborted();
      const done = (): void => {
        signal.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = (): void => {
        this.#waiting.delete(done);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#waiting.add(done);
    });
  }
}
