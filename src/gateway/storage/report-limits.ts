import { LRUCache } from 'lru-cache';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';

/** A rate, and what it counts. */
interface ReportRate {
  perSecond: number;
  burst: number;
  unit: string;
}

/** Reports of pods. */
const REPORT_BYTES: ReportRate = { perSecond: 256 * 1_024, burst: 4 * 1_024 * 1_024, unit: 'bytes of reports' };
/** Each review can write an observed record, of which a namespace has a limited number. */
export const REVIEWS: ReportRate = { perSecond: 0.1, burst: 100, unit: 'tools for review' };
/** An evicted agent starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/** Limits per agent of what this process stores for it as evidence. */
export class ReportLimits {
  readonly #clock: Clock;
  readonly #rate: ReportRate;
  readonly #buckets = new LRUCache<string, TokenBucket>({
    max: CACHE_SIZE,
    memoMethod: () => new TokenBucket(this.#clock, this.#rate),
  });

  constructor(clock: Clock, rate: ReportRate = REPORT_BYTES) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Throws TEMPER_RATE_LIMITED with the time after which `count` fits. A full bucket accepts any size. */
  take(agentUid: string, count: number): void {
    const bucket = this.#buckets.memo(agentUid);
    const { burst, perSecond, unit } = this.#rate;
    if (bucket.tryTake(Math.min(count, burst))) return;
    const waitMs = Math.ceil(bucket.waitMs(count));
    const rate = perSecond < 1 ? `one per ${Math.round(1 / perSecond)} s` : `${perSecond} per second`;
    const message = `the agent sends more ${unit} than its rate of ${rate}; send less, or wait`;
    throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: Math.max(1, waitMs) });
  }
}
