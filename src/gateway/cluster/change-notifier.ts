import { onAbort } from '../../lib/async/abort.ts';

/** Waits for changes by topic. Topics without waiters use no memory. */
export class ChangeNotifier {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Resolves all waits for any of the topics. */
  notify(topics: readonly string[]): void {
    for (const topic of topics) for (const wake of this.#waiting.get(topic) ?? []) wake();
  }

  /** Resolves when one of the topics is notified or the signal aborts. Read the state before this call, without an await in between. */
  wait(topics: readonly string[], signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        for (const topic of topics) this.#leave(topic, wake);
        listener[Symbol.dispose]();
        resolve();
      };
      for (const topic of topics) this.#enter(topic, wake);
      const listener = onAbort(signal, wake);
    });
  }

  #enter(topic: string, wake: () => void): void {
    const waiting = this.#waiting.get(topic);
    if (waiting === undefined) this.#waiting.set(topic, new Set([wake]));
    else waiting.add(wake);
  }

  #leave(topic: string, wake: () => void): void {
    const waiting = this.#waiting.get(topic);
    waiting?.delete(wake);
    if (waiting?.size === 0) this.#waiting.delete(topic);
  }
}
