import type { Clock } from '../../lib/clock.ts';

export interface BackoffOptions {
  clock: Pick<Clock, 'monotonic'>;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** The first delay, in milliseconds; doubled after each failure. */
  baseMs: number;
  /** The maximum delay before jitter, in milliseconds. */
  maxMs: number;
  /** After this many milliseconds without a failure, the delay is reset to the first delay. */
  resetAfterMs: number;
}

/** Exponential backoff with jitter: up to 100 % is added at random, so that clients that failed together do not retry together. */
export class Backoff {
  readonly #options: BackoffOptions;
  #next: number;
  #lastFailure = Number.NEGATIVE_INFINITY;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#next = options.baseMs;
  }

  /** Milliseconds to wait after the failure that just happened. */
  next(): number {
    const { clock, random, baseMs, maxMs, resetAfterMs } = this.#options;
    const now = clock.monotonic();
    if (now - this.#lastFailure > resetAfterMs) this.#next = baseMs;
    this.#lastFailure = now;
    const delay = this.#next;
    this.#next = Math.min(delay * 2, maxMs);
    return delay * (1 + random());
  }
}
