import type { Clock } from '../lib/clock.ts';

/** For tests: time stands still until it is moved. */
export class HeldClock implements Clock {
  #now = 0;
  readonly #sleepers = new Set<{ at: number; asked: number; wake: () => void }>();

  #slept = 0;

  now = (): Date => new Date(this.#now + this.#slept);
  monotonic = (): number => this.#now;

  sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const sleeper = { at: this.#now + milliseconds, asked: milliseconds, wake: resolve };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', () => {
        if (this.#sleepers.delete(sleeper)) reject(signal.reason as Error);
      });
    });
  }

  /** Time goes on and nothing runs meanwhile, as when the event loop stands still. */
  stall(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** The machine sleeps: the wall clock goes on, the other one does not. */
  suspend(milliseconds: number): void {
    this.#slept += milliseconds;
  }

  /** The waits asked for and not over, in milliseconds, as they were asked for. */
  waits(): number[] {
    return [...this.#sleepers].map((sleeper) => sleeper.asked);
  }

  /** Moves time, stopping at each sleeper on the way so that what it wakes may sleep again. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    for (;;) {
      await settle();
      const next = [...this.#sleepers].filter((one) => one.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#sleepers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets every promise that can go on go on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
