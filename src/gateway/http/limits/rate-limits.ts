import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
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
  /** Limits of all users of one namespace together, and of all its ServiceAccounts that call over A2A. */
  users: CallerLimits;
  /** Limits of one replica of the egress proxy, which asks for all agents and has limits for each of them. */
  egress?: CallerLimits;
  /** Limits of one ServiceAccount that calls over A2A. A namespace may have many. */
  peer?: CallerLimits;
}

const DEFAULT_LIMITS: CallerLimitOptions = {
  pod: { perSecond: 50, burst: 200, inFlight: 64, longPolls: 24 },
  users: { perSecond: 100, burst: 400, inFlight: 64, longPolls: 256 },
};
const DEFAULT_PEER_LIMITS: CallerLimits = { perSecond: 20, burst: 100, inFlight: 16, longPolls: 48 };
const DEFAULT_EGRESS_LIMITS: CallerLimits = { perSecond: 500, burst: 1_000, inFlight: 96, longPolls: 0 };
/** Cached callers. An evicted caller starts again with a full bucket. */
const CACHE_SIZE = 20_000;

interface CallerQuota {
  requests: TokenBucket;
  active: Record<RequestKind, number>;
}

/** Rate limits of this process per agent, per ServiceAccount that calls over A2A, and per namespace for users. */
export class CallerRateLimits {
  readonly #clock: Clock;
  readonly #options: CallerLimitOptions;
  readonly #quotas = new LRUCache<string, CallerQuota, CallerLimits>({
    ...entries(CACHE_SIZE),
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
    const quotas = this.#limitsOf(context).map(([id, limits]) => {
      const quota = this.#quotaOf(id, limits);
      assertAvailable(quota, limits, kind);
      return quota;
    });
    for (const { requests, active } of quotas) {
      requests.tryTake();
      active[kind] += 1;
    }
    reply.raw.once('close', () => {
      for (const { active } of quotas) active[kind] -= 1;
    });
  }

  /** The accounts of the caller, with their limits. */
  #limitsOf(context: RequestContext): readonly (readonly [string, CallerLimits])[] {
    const caller = callerOf(context);
    if (caller === undefined) return [];
    const { pod, users, peer = DEFAULT_PEER_LIMITS, egress = DEFAULT_EGRESS_LIMITS } = this.#options;
    if (context.egress !== undefined) return [[caller.id, egress]];
    if (context.user !== undefined) return [[caller.id, users]];
    if (context.peer === undefined) return [[caller.id, pod]];
    return [
      [caller.id, peer],
      [caller.group ?? caller.id, users],
    ];
  }

  #quotaOf(caller: string, limits: CallerLimits): CallerQuota {
    return this.#quotas.memo(caller, { context: limits });
  }
}

function assertAvailable({ requests, active }: CallerQuota, limits: CallerLimits, kind: RequestKind): void {
  if (requests.available() < 1) throw rateLimited('requests per second', Math.ceil(1_000 / limits.perSecond));
  if (active[kind] >= limits[kind]) throw rateLimited(KIND_NAMES[kind], 1_000);
}

function rateLimited(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}`, { retry });
}
