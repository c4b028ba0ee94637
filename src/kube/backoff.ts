import type { Clock } from '../lib/clock.ts';

export interface BackoffOptions {
  clock: Pick<Clock, 'monotonic'>;
  /** From 0 up to 1. */
  random: () => number;
  /** The first wait, in milliseconds; doubled each time. */
  base: number;
  /** The longest wait before jitter, in milliseconds. */
  cap: number;
  /** After so many milliseconds without a failure the next one is the first. */
  resetAfter: number;
}

/** How long to wait after each failure. Up to as much again is added by chance, so that many who failed together do not return together. */
export class Backoff {
  readonly #options: BackoffOptions;
  #next: number;
  #asked = Number.NEGATIVE_INFINITY;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#next = options.base;
  }

  /** Milliseconds to wait after the failure that just happened. */
  next(): number {
    const { clock, random, base, cap, resetAfter } = this.#options;
    const now = clock.monotonic();
    if (now - this.#asked > resetAfter) this.#next = base;
    this.#asked = now;
    const wait = this.#next;
    this.#next = Math.min(wait * 2, cap);
    return wait * (1 + random());
  }
}
