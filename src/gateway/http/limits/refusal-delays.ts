import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
import { TokenBucket, type TokenBucketOptions } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RequestContext } from '../request-context.ts';
import { callerOf } from './caller.ts';

export interface RefusalDelayOptions {
  /** Error responses that one caller, or one address without a valid token, gets at once. */
  atOnce: TokenBucketOptions;
  /** The longest delay of one response. */
  maxDelayMs: number;
}

const DEFAULT_OPTIONS: RefusalDelayOptions = { atOnce: { perSecond: 20, burst: 100 }, maxDelayMs: 1_000 };
/** Cached callers. An evicted caller starts again with a full bucket. */
const CACHE_SIZE = 20_000;

/**
 * Delays error responses of this process to callers that cause many. A refusal costs little, but thousands per second take a core from all
 * other callers, and a client that waits for a response sends nothing meanwhile on its connection. Connections per address have a limit.
 */
export class RefusalDelays {
  readonly #clock: Clock;
  readonly #maxDelayMs: number;
  readonly #buckets: LRUCache<string, TokenBucket>;

  constructor(clock: Clock, { atOnce, maxDelayMs }: RefusalDelayOptions = DEFAULT_OPTIONS) {
    this.#clock = clock;
    this.#maxDelayMs = maxDelayMs;
    this.#buckets = new LRUCache({ ...entries(CACHE_SIZE), memoMethod: () => new TokenBucket(clock, atOnce) });
  }

  /** Counts an error response, and resolves when it may be sent: at once, up to `maxDelayMs` later, or when the client disconnects. */
  async wait(context: RequestContext): Promise<void> {
    // The egress proxy asks for all agents: the refusals of one must not delay those of others.
    if (context.egress !== undefined) return;
    const bucket = this.#buckets.memo(callerOf(context)?.id ?? context.address);
    // A caller that has the longest delay owes no more, so it has none soon after it stops.
    const isInDebt = bucket.waitMs() > this.#maxDelayMs;
    const delayMs = isInDebt ? this.#maxDelayMs : bucket.reserve();
    if (delayMs === 0) return;
    await this.#clock.sleep(delayMs, context.disconnected).catch(() => undefined);
  }
}
