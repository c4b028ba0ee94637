import { onAbort } from '../../lib/async/abort.ts';

/** Waits per turn of the event loop. Each may compute and send an assignment with a long prompt, which takes a millisecond. */
const MAX_WAKES_PER_TURN = 8;

/**
 * Waits for changes by topic. Topics without waiters use no memory. A change of a policy wakes the long polls of thousands of agents: the
 * notifier resolves a few in each turn of the event loop, so that the requests of other agents do not wait for all of them.
 */
export class ChangeNotifier {
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Waits whose topic was notified. */
  readonly #due = new Set<() => void>();
  #isScheduled = false;

  /** Resolves all waits for any of the topics: a few before it returns, the others in later turns of the event loop. */
  notify(topics: readonly string[]): void {
    for (const topic of topics) for (const wake of this.#waiting.get(topic) ?? []) this.#due.add(wake);
    if (!this.#isScheduled) this.#wakeSome();
  }

  /** Resolves when one of the topics is notified or the signal aborts. Read the state before this call, without an await in between. */
  wait(topics: readonly string[], signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#due.delete(wake);
        for (const topic of topics) this.#leave(topic, wake);
        listener[Symbol.dispose]();
        resolve();
      };
      for (const topic of topics) this.#enter(topic, wake);
      const listener = onAbort(signal, wake);
    });
  }

  #wakeSome(): void {
    let count = 0;
    for (const wake of this.#due) {
      if (count === MAX_WAKES_PER_TURN) break;
      wake();
      count += 1;
    }
    this.#isScheduled = this.#due.size > 0;
    if (this.#isScheduled) setImmediate(() => this.#wakeSome());
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
