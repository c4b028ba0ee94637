import { onAbort } from './abort.ts';

/** Wakes callers that wait for a change, as a condition variable does. Remembers nothing. */
export class Notifier {
  readonly #waiting = new Set<() => void>();

  /** Resolves at the next `notifyAll` or when the signal aborts. Check the state before this call, without an await in between. */
  wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        listener[Symbol.dispose]();
        resolve();
      };
      this.#waiting.add(wake);
      const listener = onAbort(signal, wake);
    });
  }

  notifyAll(): void {
    for (const wake of this.#waiting) wake();
  }
}
