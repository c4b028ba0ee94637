import { onAbort } from './abort.ts';

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
    if (this.#isOpen) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const done = (): void => {
        listener[Symbol.dispose]();
        resolve();
      };
      this.#waiting.add(done);
      const listener = onAbort(signal, () => {
        this.#waiting.delete(done);
        reject(signal.reason as Error);
      });
    });
  }
}
