import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { type Rate, takeFrom } from '../../lib/async/rate.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';

/** Reports of pods. */
const REPORT_BYTES: Rate = { perSecond: 256 * 1_024, burst: 4 * 1_024 * 1_024, unit: 'bytes of reports' };
/** Each review can write an observed record, of which a namespace has a limited number. */
export const REVIEWS: Rate = { perSecond: 0.1, burst: 100, unit: 'tools for review' };
/** An evicted agent starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/** Limits per agent of what this process stores for it as evidence. */
export class ReportLimits {
  readonly #clock: Clock;
  readonly #rate: Rate;
  readonly #buckets = new LRUCache<string, TokenBucket>({
    ...entries(CACHE_SIZE),
    memoMethod: () => new TokenBucket(this.#clock, this.#rate),
  });

  constructor(clock: Clock, rate: Rate = REPORT_BYTES) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Throws TEMPER_RATE_LIMITED with the time after which `count` fits. A full bucket accepts any size. */
  take(agentUid: string, count: number): void {
    takeFrom(this.#buckets.memo(agentUid), this.#rate, count);
  }
}
