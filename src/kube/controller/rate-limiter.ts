import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';

/** Computes the delay of a retry. Only retries are rate-limited; watch events never are. */
export interface RateLimiter {
  /** Milliseconds until the key may be retried. Counts one failure of the key. */
  when(key: string): number;
  /** Resets the failures of the key; called after a success. */
  forget(key: string): void;
  /** The failures of the key since the last `forget`. */
  failures(key: string): number;
}

export interface RateLimiterOptions {
  /** The delay after the first failure of a key, in milliseconds; doubled after each further failure. */
  baseDelayMs: number;
  /** The maximum delay for the failures of one key, in milliseconds. */
  maxDelayMs: number;
  /** The burst of the token bucket that all keys share. */
  burst: number;
  /** The refill rate of the token bucket that all keys share. */
  perSecond: number;
}

const DEFAULT_LIMITS: RateLimiterOptions = { baseDelayMs: 5, maxDelayMs: 1_000_000, burst: 100, perSecond: 10 };

/** The longer of two delays: exponential backoff per key, and a token bucket that all keys share. */
export function createRateLimiter(
  clock: Pick<Clock, 'monotonic'>,
  limits: Partial<RateLimiterOptions> = {},
): RateLimiter {
  const { baseDelayMs, maxDelayMs, burst, perSecond } = { ...DEFAULT_LIMITS, ...limits };
  const failures = new Map<string, number>();
  const bucket = new TokenBucket(clock, { burst, perSecond });
  return {
    when(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      return Math.max(Math.min(baseDelayMs * 2 ** count, maxDelayMs), bucket.reserve());
    },
    forget: (key) => void failures.delete(key),
    failures: (key) => failures.get(key) ?? 0,
  };
}
