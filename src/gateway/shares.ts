import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Call } from './calls.ts';

export interface ShareLimits {
  /** Calls a second that one caller may make for long. */
  perSecond: number;
  /** Calls it may make at once after a pause. */
  burst: number;
  /** Calls under way at the same time, long polls apart. */
  inFlight: number;
  /** Long polls at the same time. */
  longPolls: number;
}

export interface ShareOptions {
  /** Of each agent, and of each warm pod. */
  pod: ShareLimits;
  /** Of all people of one namespace together. */
  people: ShareLimits;
}

const STANDARD: ShareOptions = {
  pod: { perSecond: 50, burst: 200, inFlight: 16, longPolls: 4 },
  people: { perSecond: 100, burst: 400, inFlight: 64, longPolls: 256 },
};
/** People of a namespace share its bucket; most are idle, so forgetting the oldest costs a bucket of tokens at most. */
const REMEMBERED = 20_000;

interface Share {
  tokens: number;
  filledAt: number;
  inFlight: number;
  longPolls: number;
}

/** How much of this process each agent, and the people of each namespace, may use. */
export class Shares {
  readonly #clock: Clock;
  readonly #options: ShareOptions;
  readonly #shares = new LRUCache<string, Share>({ max: REMEMBERED });

  constructor(clock: Clock, options: ShareOptions = STANDARD) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Counts the call until its answer is over. Throws TEMPER_RATE_LIMITED when the caller has no share left. */
  take(call: Call, longPoll: boolean, reply: FastifyReply): void {
    const caller = callerOf(call);
    if (caller === undefined) return;
    const limits = this.#options[call.person === undefined ? 'pod' : 'people'];
    const share = this.#refilled(caller, limits);
    if (share.tokens < 1) throw tooMany('calls in a short time', Math.ceil(1_000 / limits.perSecond));
    const kind = longPoll ? 'longPolls' : 'inFlight';
    if (share[kind] >= limits[kind]) throw tooMany(longPoll ? 'long polls at once' : 'calls at once', 1_000);
    share.tokens -= 1;
    share[kind] += 1;
    reply.raw.once('close', () => {
      share[kind] -= 1;
    });
  }

  #refilled(caller: string, { burst, perSecond }: ShareLimits): Share {
    const now = this.#clock.monotonic();
    const share = this.#shares.get(caller) ?? { tokens: burst, filledAt: now, inFlight: 0, longPolls: 0 };
    share.tokens = Math.min(burst, share.tokens + ((now - share.filledAt) / 1_000) * perSecond);
    share.filledAt = now;
    this.#shares.set(caller, share);
    return share;
  }
}

function callerOf({ pod, podToken, person }: Call): string | undefined {
  if (pod !== undefined) return `agent/${pod.agentUid}`;
  // A pod that asks who it is may be bound already; it has no second share for that.
  if (podToken !== undefined) return 'agentUid' in podToken ? `agent/${podToken.agentUid}` : `pod/${podToken.podUid}`;
  return person === undefined ? undefined : `people/${person.namespace}`;
}

function tooMany(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}`, { retry });
}
