import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
import { TokenBucket } from '../../../lib/async/token-bucket.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { bodyTooLarge } from '../body/json-body.ts';
import type { RequestContext } from '../request-context.ts';
import { callerOf } from './caller.ts';

export interface ByteLimits {
  /** Sustained bytes of bodies per second. */
  perSecond: number;
  /** Size of the token bucket. */
  burst: number;
  /** Bytes of the bodies of requests in progress: the gateway holds a body until its response ends. */
  inFlight: number;
}

export interface ByteLimitOptions {
  /** Limits per agent, per warm pod, per ServiceAccount, and of all users of one namespace together. */
  caller: ByteLimits;
  /** Limits of all pods, and of all ServiceAccounts, of one namespace together. */
  namespace: ByteLimits;
  /** Bytes of the bodies of all requests in progress. */
  totalInFlight: number;
}

const MIB = 1_048_576;
/** Two of the largest bodies of an agent; a namespace may hold half of what the gateway holds. */
const DEFAULT_LIMITS: ByteLimitOptions = {
  caller: { perSecond: 2 * MIB, burst: 16 * MIB, inFlight: 16 * MIB },
  namespace: { perSecond: 8 * MIB, burst: 64 * MIB, inFlight: 32 * MIB },
  totalInFlight: 64 * MIB,
};
/** Cached accounts. An evicted account starts again with a full bucket. */
const CACHE_SIZE = 20_000;
const RETRY_MS = 1_000;

interface Account {
  limits: ByteLimits;
  bytes: TokenBucket;
  inFlight: number;
}

/** Limits of this process for the bytes of bodies, per caller and per namespace, beside the limits of calls. */
export class BodyByteLimits {
  readonly #clock: Clock;
  readonly #options: ByteLimitOptions;
  readonly #accounts = new LRUCache<string, Account, ByteLimits>({
    ...entries(CACHE_SIZE),
    memoMethod: (_id, _stale, { context: limits }) => ({
      limits,
      bytes: new TokenBucket(this.#clock, limits),
      inFlight: 0,
    }),
  });
  /** Requests with a body of unknown length, which is charged as it arrives. */
  readonly #unmeasured = new WeakMap<FastifyRequest, readonly Account[]>();
  #inFlight = 0;

  constructor(clock: Clock, options: ByteLimitOptions = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Reserves the body of the request until its response ends, before anything of it is read. A body of unknown length reserves the limit
   * of its route. Throws TEMPER_REQUEST_TOO_LARGE, TEMPER_RATE_LIMITED or TEMPER_OVERLOADED.
   */
  acquire(context: RequestContext, request: FastifyRequest, reply: FastifyReply): void {
    const length = declaredLength(request);
    if (length === 0) return;
    const { bodyLimit } = request.routeOptions;
    if (length !== undefined && length > bodyLimit) throw bodyTooLarge(bodyLimit);
    const accounts = this.#accountsOf(context);
    const reserved = length ?? bodyLimit;
    for (const account of accounts) assertAvailable(account, reserved);
    if (this.#inFlight + reserved > this.#options.totalInFlight) {
      throw new TemperError('TEMPER_OVERLOADED', 'the gateway holds as many bytes of requests as it may', {
        retry: RETRY_MS,
      });
    }
    if (length === undefined) this.#unmeasured.set(request, accounts);
    else for (const { bytes } of accounts) bytes.reserve(length);
    this.#hold(accounts, reserved, reply);
  }

  /** Charges a part of a body of unknown length. */
  count(request: FastifyRequest, size: number): void {
    for (const { bytes } of this.#unmeasured.get(request) ?? []) bytes.reserve(size);
  }

  #hold(accounts: readonly Account[], reserved: number, reply: FastifyReply): void {
    this.#inFlight += reserved;
    for (const account of accounts) account.inFlight += reserved;
    reply.raw.once('close', () => {
      this.#inFlight -= reserved;
      for (const account of accounts) account.inFlight -= reserved;
    });
  }

  #accountsOf(context: RequestContext): Account[] {
    const caller = callerOf(context);
    if (caller === undefined) return [];
    const { caller: ofCaller, namespace } = this.#options;
    const accounts = [this.#accounts.memo(caller.id, { context: ofCaller })];
    if (caller.group !== undefined) accounts.push(this.#accounts.memo(caller.group, { context: namespace }));
    return accounts;
  }
}

function assertAvailable({ limits, bytes, inFlight }: Account, size: number): void {
  if (inFlight + size > limits.inFlight) throw rateLimited('bytes of requests in progress', RETRY_MS);
  const waitMs = bytes.waitMs(size);
  if (waitMs > 0) throw rateLimited('bytes per second', Math.ceil(waitMs));
}

function rateLimited(what: string, retry: number): TemperError {
  return new TemperError('TEMPER_RATE_LIMITED', `too many ${what}; send less, or retry after the stated time`, {
    retry,
  });
}

/** Undefined for a chunked body; 0 without a body. Node refuses a request with an invalid length, or with both headers. */
function declaredLength({ headers }: FastifyRequest): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}
