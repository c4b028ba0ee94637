import type { Clock } from '../clock.ts';

export interface TokenBucketOptions {
  /** The size of the bucket, which is full at the start. */
  burst: number;
  /** The refill rate in tokens. */
  perSecond: number;
}

/** A token bucket: allows bursts, and `perSecond` calls on average. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #refilledAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>, options: TokenBucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#refilledAt = clock.monotonic();
  }

  /** The tokens in the bucket, fractions included; negative after `reserve` has taken more than there were. */
  available(): number {
    const { burst, perSecond } = this.#options;
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#refilledAt) * perSecond) / 1_000);
    this.#refilledAt = now;
    return this.#tokens;
  }

  /** Milliseconds until the bucket holds as many tokens; a full bucket counts as enough for any number. */
  waitMs(count = 1): number {
    const { burst, perSecond } = this.#options;
    const missing = Math.min(count, burst) - this.available();
    return missing > 0 ? (missing / perSecond) * 1_000 : 0;
  }

  /** Takes tokens, one by default; false without as many. */
  tryTake(count = 1): boolean {
    if (this.available() < count) return false;
    this.#tokens -= count;
    return true;
  }

  /** Returns tokens that were taken for nothing. */
  giveBack(count = 1): void {
    this.#tokens = Math.min(this.#options.burst, this.available() + count);
  }

  /** Takes tokens, also ones that are refilled later, and returns the milliseconds until then. Later calls wait longer. */
  reserve(count = 1): number {
    this.#tokens = this.available() - count;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#options.perSecond) * 1_000;
  }
}
