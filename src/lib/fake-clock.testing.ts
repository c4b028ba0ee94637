import { onAbort } from './async/abort.ts';
import type { Clock } from './clock.ts';

/** For tests: a clock that moves only when the test moves it. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #sleepers = new Set<{ at: number; delay: number; wake: () => void }>();

  #suspended = 0;

  now = (): Date => new Date(this.#now + this.#suspended);
  monotonic = (): number => this.#now;

  sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const wake = (): void => {
        listener[Symbol.dispose]();
        resolve();
      };
      const sleeper = { at: this.#now + milliseconds, delay: milliseconds, wake };
      this.#sleepers.add(sleeper);
      const listener = onAbort(signal, () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason as Error);
      });
    });
  }

  /** Moves the time without running any timer, as when the event loop is blocked. */
  blockEventLoop(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** Moves only the wall clock, as when the machine is suspended: the monotonic clock stops meanwhile. */
  suspend(milliseconds: number): void {
    this.#suspended += milliseconds;
  }

  /** The requested delays of all pending sleeps, in milliseconds. */
  pendingDelays(): number[] {
    return [...this.#sleepers].map((sleeper) => sleeper.delay);
  }

  /** Moves the time and wakes each sleeper at its time, so that the code it resumes can sleep again. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    for (;;) {
      await flushPromises();
      const next = [...this.#sleepers].filter((sleeper) => sleeper.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#sleepers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
    this.#now = end;
    await flushPromises();
  }
}

/** Runs all pending promise callbacks. */
export function flushPromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
