import type { Clock } from '../lib/clock.ts';

/** Says how long a retry of a key waits. Only retries pass it; a change of the world never waits. */
export interface RateLimiter {
  /** Milliseconds until the key may be tried again; counts one failure of the key. */
  when(key: string): number;
  /** The key succeeded: its next failure is its first. */
  forget(key: string): void;
  /** Failures of the key since it was last forgotten. */
  failures(key: string): number;
}

export interface RateLimits {
  /** Wait after the first failure of a key, in milliseconds; doubled by each further one. */
  baseDelay: number;
  /** Longest wait for the failures of one key, in milliseconds. */
  maxDelay: number;
  /** Retries of all keys together that may happen at once. */
  burst: number;
  /** Retries of all keys together in a second, once the burst is used. */
  perSecond: number;
}

const DEFAULT_LIMITS: RateLimits = { baseDelay: 5, maxDelay: 1_000_000, burst: 100, perSecond: 10 };

/** The longer of two waits: one grows with the failures of the key, one is a token bucket all keys share. */
export function createRateLimiter(clock: Pick<Clock, 'monotonic'>, limits: Partial<RateLimits> = {}): RateLimiter {
  const { baseDelay, maxDelay, burst, perSecond } = { ...DEFAULT_LIMITS, ...limits };
  const failures = new Map<string, number>();
  let tokens = burst;
  let refilledAt = clock.monotonic();

  /** Takes a token, on credit when there is none: who comes later then waits longer. */
  function reserve(): number {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - refilledAt) / 1_000) * perSecond);
    refilledAt = now;
    tokens -= 1;
    return tokens >= 0 ? 0 : (-tokens / perSecond) * 1_000;
  }

  return {
    when(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      return Math.max(Math.min(baseDelay * 2 ** count, maxDelay), reserve());
    },
    forget: (key) => void failures.delete(key),
    failures: (key) => failures.get(key) ?? 0,
  };
}
