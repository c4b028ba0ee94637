import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { TokenBucket, type TokenBucketOptions } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { WebhookPath } from './request.ts';

const PER_ADDRESS: TokenBucketOptions = { perSecond: 20, burst: 200 };
const PER_WEBHOOK: TokenBucketOptions = { perSecond: 2, burst: 60 };
/** An evicted entry starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/** The same for a path that does not exist: a limit says nothing about it. */
export class WebhookLimits {
  readonly #buckets: LRUCache<string, TokenBucket, TokenBucketOptions>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#buckets = new LRUCache<string, TokenBucket, TokenBucketOptions>({
      ...entries(CACHE_SIZE),
      memoMethod: (_key, _stale, { context: options }) => new TokenBucket(clock, options),
    });
  }

  /** Throws TEMPER_RATE_LIMITED. */
  take(address: string, { namespace, agent, trigger }: WebhookPath): void {
    const ofAddress = this.#buckets.memo(address, { context: PER_ADDRESS });
    const ofWebhook = this.#buckets.memo(`${address} ${namespace}/${agent}/${trigger}`, { context: PER_WEBHOOK });
    if (ofAddress.tryTake() && ofWebhook.tryTake()) return;
    throw new TemperError('TEMPER_RATE_LIMITED', 'too many requests to webhooks from this address', { retry: 1_000 });
  }
}
