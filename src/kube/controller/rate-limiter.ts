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
  /** The maximum delay that the token bucket adds, in milliseconds. */
  maxSharedDelayMs: number;
}

/**
 * client-go limits all keys together to ten retries per second, without a maximum: after an outage, ten thousand failed keys wait up to a
 * thousand seconds. These limits spread them over half a minute.
 */
const DEFAULT_LIMITS: RateLimiterOptions = {
  baseDelayMs: 5,
  maxDelayMs: 300_000,
  burst: 100,
  perSecond: 100,
  maxSharedDelayMs: 30_000,
};

/** The longer of two delays: exponential backoff per key, and a token bucket that all keys share. */
export function createRateLimiter(
  clock: Pick<Clock, 'monotonic'>,
  limits: Partial<RateLimiterOptions> = {},
): RateLimiter {
  const { baseDelayMs, maxDelayMs, burst, perSecond, maxSharedDelayMs } = { ...DEFAULT_LIMITS, ...limits };
  const failures = new Map<string, number>();
  const bucket = new TokenBucket(clock, { burst, perSecond });
  const maxDebt = (maxSharedDelayMs / 1_000) * perSecond;
  // Beyond the maximum the bucket stays as it is, so that its debt is repaid within the maximum delay.
  const sharedDelay = (): number => (1 - bucket.available() > maxDebt ? maxSharedDelayMs : bucket.reserve());
  return {
    when(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      return Math.max(Math.min(baseDelayMs * 2 ** count, maxDelayMs), sharedDelay());
    },
    forget: (key) => void failures.delete(key),
    failures: (key) => failures.get(key) ?? 0,
  };
}
