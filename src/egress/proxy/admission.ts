import { LRUCache } from 'lru-cache';
import { FairQueue } from '../../lib/async/fair-queue.ts';
import { TokenBucket, type TokenBucketOptions } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AuthorizedConnection, Authorizer, ConnectionRequest } from '../authorizer.ts';

export interface AdmissionOptions {
  clock: Clock;
  authorizer: Pick<Authorizer, 'authorize'>;
  /** Requests of one address. */
  perAddress?: TokenBucketOptions;
}

const PER_ADDRESS: TokenBucketOptions = { perSecond: 20, burst: 100 };
/** Cached addresses. An evicted address starts again with a full bucket. */
const CACHE_SIZE = 20_000;
/** Authorizations at the same time; the addresses take turns. */
const CONCURRENCY = 48;
const TIMEOUT_MS = 5_000;

/** Asks whether a request is allowed, for every address in its turn: a pod that floods the proxy delays itself. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #queue = new FairQueue(CONCURRENCY);
  readonly #buckets: LRUCache<string, TokenBucket>;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const limits = options.perAddress ?? PER_ADDRESS;
    this.#buckets = new LRUCache({ max: CACHE_SIZE, memoMethod: () => new TokenBucket(options.clock, limits) });
  }

  /** Throws TEMPER_RATE_LIMITED without asking; else what the authorizer throws, or the reason of the signal. */
  async authorize(request: ConnectionRequest, signal: AbortSignal): Promise<AuthorizedConnection> {
    const { clock, authorizer } = this.#options;
    const bucket = this.#buckets.memo(request.address);
    if (!bucket.tryTake()) {
      throw new TemperError('TEMPER_RATE_LIMITED', 'too many requests from this address', {
        retry: Math.ceil(bucket.waitMs()),
      });
    }
    return this.#queue.run(request.address, async () => {
      signal.throwIfAborted();
      const deadline = clock.monotonic() + TIMEOUT_MS;
      return authorizer.authorize(request, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        deadline,
        key: 'authorize',
      });
    });
  }
}
