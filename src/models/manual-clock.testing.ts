import type { Clock } from '../lib/clock.ts';

/** Time that passes only when somebody sleeps: every sleep ends at once and moves the clock by its length. */
export class JumpingClock implements Clock {
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
