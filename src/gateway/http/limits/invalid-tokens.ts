import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
import { TokenBucket, type TokenBucketOptions } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';

export interface InvalidTokenLimitOptions {
  /** Tokens of pods that one address may send without one that is valid. */
  pods: TokenBucketOptions;
  /** Tokens of users, all of which arrive from the addresses of the API servers. */
  users: TokenBucketOptions;
}

const DEFAULT_LIMITS: InvalidTokenLimitOptions = {
  pods: { perSecond: 10, burst: 100 },
  users: { perSecond: 100, burst: 1_000 },
};
/** Cached addresses. An evicted address starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/**
 * Limits of this process for tokens that are not valid, per address: to check a signature costs more than the rest of a refused request.
 * Tokens that were verified before are not limited, so a flood delays only the first request with a new token of the same address.
 */
export class InvalidTokenLimits {
  readonly #clock: Clock;
  readonly #options: InvalidTokenLimitOptions;
  readonly #buckets = new LRUCache<string, TokenBucket, TokenBucketOptions>({
    ...entries(CACHE_SIZE),
    memoMethod: (_key, _stale, { context: limits }) => new TokenBucket(this.#clock, limits),
  });

  constructor(clock: Clock, options: InvalidTokenLimitOptions = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Runs the verification of a token. Throws TEMPER_RATE_LIMITED without running it when the address has sent too many invalid tokens. */
  async verify<T>(address: string, kind: keyof InvalidTokenLimitOptions, verification: () => Promise<T>): Promise<T> {
    const bucket = this.#buckets.memo(`${kind}/${address}`, { context: this.#options[kind] });
    if (!bucket.tryTake()) {
      throw new TemperError('TEMPER_RATE_LIMITED', 'too many invalid tokens from this address; send a valid token', {
        retry: Math.ceil(1_000 / this.#options[kind].perSecond),
      });
    }
    let invalid = false;
    try {
      return await verification();
    } catch (error) {
      invalid = isTemperError(error, 'TEMPER_TOKEN_INVALID') || isTemperError(error, 'TEMPER_TOKEN_AUDIENCE');
      throw error;
    } finally {
      if (!invalid) bucket.giveBack();
    }
  }
}
