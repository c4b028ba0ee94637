import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Call } from './calls.ts';

export interface ShareLimits {
  /** Sustained requests per second of one caller. */
  perSecond: number;
  /** Size of the token bucket. */
  burst: number;
  /** Concurrent requests, without long polls. */
  inFlight: number;
  /** Concurrent long polls. */
  longPolls: number;
}

export interface ShareOptions {
  /** Limits per agent, and per warm pod. */
  pod: ShareLimits;
  /** Limits of all users of one namespace together. */
  people: ShareLimits;
}

const DEFAULT_LIMITS: ShareOptions = {
  pod: { perSecond: 50, burst: 200, inFlight: 16, longPolls: 4 },
  people: { perSecond: 100, burst: 400, inFlight: 64, longPolls: 256 },
};
/** Cached callers. An evicted caller starts again with a full bucket. */
const CACHE_SIZE = 20_000;

interface CallerQuota {
  tokens: number;
  filledAt: number;
  inFlight: number;
  longPolls: number;
}

/** Rate limits of this process per agent, and per namespace for users. */
export class Shares {
  readonly #clock: Clock;
  readonly #options: ShareOptions;
  readonly #quotas = new LRUCache<string, CallerQuota>({ max: CACHE_SIZE });

  constructor(clock: Clock, options: ShareOptions = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Counts the request until its response ends. Throws TEMPER_RATE_LIMITED when the caller has reached a limit. */
  take(context: Call, longPoll: boolean, reply: FastifyReply): void {
    const caller = callerOf(context);
    if (caller === undefined) return;
    const limits = context.user === undefined ? this.#options.pod : this.#options.people;
    const quota = this.#refilled(caller, limits);
    if (quota.tokens < 1) throw rateLimited('requests per second', Math.ceil(1_000 / limits.perSecond));
    const kind = longPoll ? 'longPolls' : 'inFlight';
    if (quota[kind] >= limits[kind])
      throw rateLimited(longPoll ? 'concurrent long polls' : 'concurrent requests', 1_000);
    quota.tokens -= 1;
    quota[kind] += 1;
    reply.raw.once('close', () => {
      quota[kind] -= 1;
    });
  }

  #refilled(caller: string, { burst, perSecond }: ShareLimits): CallerQuota {
    const now = this.#clock.monotonic();
    const quota = this.#quotas.get(caller) ?? { tokens: burst, filledAt: now, inFlight: 0, longPolls: 0 };
    quota.tokens = Math.min(burst, quota.tokens + ((now - quota.filledAt) / 1_000) * perSecond);
    quota.filledAt = now;
    this.#quotas.set(caller, quota);
    return quota;
  }
}

function callerOf({ pod, podToken, user }: Call): string | undefined {
  if (pod !== undefined) return `agent/${pod.agentUid}`;
  // A pod that requests its assignment may be bound already; it then uses the limits of its agent.
  if (podToken !== undefined) return 'agentUid' in podToken ? `agent/${podToken.agentUid}` : `pod/${podToken.podUid}`;
  return user === undefined ? undefined : `users/${user.namespace}`;
}

function rateLimited(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}`, { retry });
}
