import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { TokenBucket } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { callerOf } from './caller.ts';
import type { RequestContext } from '../request-context.ts';

export interface CallerLimits {
  /** Sustained requests per second of one caller. */
  perSecond: number;
  /** Size of the token bucket. */
  burst: number;
  /** Concurrent requests, without long polls. */
  inFlight: number;
  /** Concurrent long polls. */
  longPolls: number;
}

export interface CallerLimitOptions {
  /** Limits per agent, and per warm pod. */
  pod: CallerLimits;
  /** Limits of all users of one namespace together. */
  users: CallerLimits;
}

const DEFAULT_LIMITS: CallerLimitOptions = {
  pod: { perSecond: 50, burst: 200, inFlight: 16, longPolls: 4 },
  users: { perSecond: 100, burst: 400, inFlight: 64, longPolls: 256 },
};
/** Cached callers. An evicted caller starts again with a full bucket. */
const CACHE_SIZE = 20_000;

interface CallerQuota {
  requests: TokenBucket;
  inFlight: number;
  longPolls: number;
}

/** Rate limits of this process per agent, and per namespace for users. */
export class CallerRateLimits {
  readonly #clock: Clock;
  readonly #options: CallerLimitOptions;
  readonly #quotas = new LRUCache<string, CallerQuota>({ max: CACHE_SIZE });

  constructor(clock: Clock, options: CallerLimitOptions = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Counts the request until its response ends. Throws TEMPER_RATE_LIMITED when the caller has reached a limit. */
  acquire(context: RequestContext, longPoll: boolean, reply: FastifyReply): void {
    const caller = callerOf(context);
    if (caller === undefined) return;
    const limits = context.user === undefined ? this.#options.pod : this.#options.users;
    const quota = this.#quotaOf(caller.id, limits);
    if (quota.requests.available() < 1) throw rateLimited('requests per second', Math.ceil(1_000 / limits.perSecond));
    const kind = longPoll ? 'longPolls' : 'inFlight';
    if (quota[kind] >= limits[kind])
      throw rateLimited(longPoll ? 'concurrent long polls' : 'concurrent requests', 1_000);
    quota.requests.tryTake();
    quota[kind] += 1;
    reply.raw.once('close', () => {
      quota[kind] -= 1;
    });
  }

  #quotaOf(caller: string, limits: CallerLimits): CallerQuota {
    const known = this.#quotas.get(caller);
    if (known !== undefined) return known;
    const quota: CallerQuota = { requests: new TokenBucket(this.#clock, limits), inFlight: 0, longPolls: 0 };
    this.#quotas.set(caller, quota);
    return quota;
  }
}

function rateLimited(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}`, { retry });
}
