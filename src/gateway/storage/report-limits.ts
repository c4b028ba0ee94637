import { LRUCache } from 'lru-cache';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';

const DEFAULT_RATE = { perSecond: 256 * 1_024, burst: 4 * 1_024 * 1_024 };
/** An evicted agent starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/** Bytes per second that an agent may report to this process. */
export class ReportLimits {
  readonly #clock: Clock;
  readonly #rate: typeof DEFAULT_RATE;
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: CACHE_SIZE });

  constructor(clock: Clock, rate = DEFAULT_RATE) {
    this.#clock = clock;
    this.#rate = rate;
  }

  /** Throws TEMPER_RATE_LIMITED with the time after which the bytes fit. A full bucket accepts any size. */
  take(agentUid: string, bytes: number): void {
    const bucket = this.#buckets.get(agentUid) ?? new TokenBucket(this.#clock, this.#rate);
    this.#buckets.set(agentUid, bucket);
    const { burst, perSecond } = this.#rate;
    const wanted = Math.min(bytes, burst);
    if (bucket.tryTake(wanted)) return;
    const waitMs = Math.ceil(((wanted - bucket.available()) / perSecond) * 1_000);
    const message = `the agent reports more than ${perSecond} bytes per second; report less`;
    throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: Math.max(1, waitMs) });
  }
}
