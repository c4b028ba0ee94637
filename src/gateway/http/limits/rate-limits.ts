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

/** The limit of concurrency that a route counts against. */
export type RequestKind = 'inFlight' | 'longPolls';

const KIND_NAMES: Readonly<Record<RequestKind, string>> = {
  inFlight: 'concurrent requests',
  longPolls: 'concurrent long polls',
};

export interface CallerLimitOptions {
  /** Limits per agent, and per warm pod. */
  pod: CallerLimits;
  /** Limits of all users of one namespace together. */
  users: CallerLimits;
}

const DEFAULT_LIMITS: CallerLimitOptions = {
  pod: { perSecond: 50, burst: 200, inFlight: 64, longPolls: 24 },
  users: { perSecond: 100, burst: 400, inFlight: 64, longPolls: 256 },
};
/** Cached callers. An evicted caller starts again with a full bucket. */
const CACHE_SIZE = 20_000;

interface CallerQuota {
  requests: TokenBucket;
  active: Record<RequestKind, number>;
}

/** Rate limits of this process per agent, and per namespace for users. */
export class CallerRateLimits {
  readonly #clock: Clock;
  readonly #options: CallerLimitOptions;
  readonly #quotas = new LRUCache<string, CallerQuota, CallerLimits>({
    max: CACHE_SIZE,
    memoMethod: (_caller, _stale, { context: limits }) => ({
      requests: new TokenBucket(this.#clock, limits),
      active: { inFlight: 0, longPolls: 0 },
    }),
  });

  constructor(clock: Clock, options: CallerLimitOptions = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Counts the request until its response ends. Throws TEMPER_RATE_LIMITED when the caller has reached a limit. */
  acquire(context: RequestContext, kind: RequestKind, reply: FastifyReply): void {
    const caller = callerOf(context);
    if (caller === undefined) return;
    const limits = context.user === undefined ? this.#options.pod : this.#options.users;
    const quota = this.#quotaOf(caller.id, limits);
    if (quota.requests.available() < 1) throw rateLimited('requests per second', Math.ceil(1_000 / limits.perSecond));
    const { active } = quota;
    if (active[kind] >= limits[kind]) throw rateLimited(KIND_NAMES[kind], 1_000);
    quota.requests.tryTake();
    active[kind] += 1;
    reply.raw.once('close', () => {
      active[kind] -= 1;
    });
  }

  #quotaOf(caller: string, limits: CallerLimits): CallerQuota {
    return this.#quotas.memo(caller, { context: limits });
  }
}

function rateLimited(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}`, { retry });
}
