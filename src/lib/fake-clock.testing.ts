import { onAbort } from './async/abort.ts';
import type { Clock } from './clock.ts';

/** For tests: a clock that moves only when the test moves it. */
export class FakeClock implements Clock {
  readonly #start: number;
  #now = 0;
  readonly #sleepers = new Set<{ at: number; delay: number; wake: () => void }>();

  #suspended = 0;

  /** `start`: RFC 3339. */
  constructor(start = '1970-01-01T00:00:00Z') {
    this.#start = Date.parse(start);
  }

  now = (): Date => new Date(this.#start + this.#now + this.#suspended);
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
  skip(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** The same up to this time (RFC 3339). */
  skipTo(time: string): void {
    this.#now += Date.parse(time) - this.now().getTime();
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

/** For tests: every sleep ends at once and moves the time by its duration. */
export class AutoAdvancingClock implements Clock {
  readonly slept: number[] = [];
  #milliseconds = 0;

  now(): Date {
    return new Date(Date.UTC(2026, 0, 1) + this.#milliseconds);
  }

  monotonic(): number {
    return this.#milliseconds;
  }

  advance(milliseconds: number): void {
    this.#milliseconds += milliseconds;
  }

  async sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.slept.push(milliseconds);
    this.#milliseconds += milliseconds;
  }
}

/** Runs all pending promise callbacks. */
export function flushPromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
