import type { Clock } from '../lib/clock.ts';

/** A fake clock that advances by itself: every sleep resolves at once and advances the time by its duration. */
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
