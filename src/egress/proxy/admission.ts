import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { namedOwner } from '../../gateway-api/egress/named-owner.ts';
import { FairQueue } from '../../lib/async/fair-queue.ts';
import { TokenBucket, type TokenBucketOptions } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { AuthorizedConnection, Authorizer, ConnectionRequest } from '../authorizer.ts';

export interface AdmissionOptions {
  clock: Clock;
  authorizer: Pick<Authorizer, 'authorize'>;
}

/** Requests of one address, except those of a gateway. */
const PER_ADDRESS: TokenBucketOptions = { perSecond: 20, burst: 100 };
/** Requests of one gateway for one agent, and for all agents of one namespace. */
const PER_AGENT: TokenBucketOptions = { perSecond: 20, burst: 100 };
const PER_NAMESPACE: TokenBucketOptions = { perSecond: 80, burst: 400 };
/** Cached buckets of one kind. An evicted one starts again full. */
const CACHE_SIZE = 20_000;
/** Cached tokens of gateways. An evicted one is asked about again. */
const MAX_GATEWAY_TOKENS = 1_000;
/** Authorizations at the same time; the senders take turns. */
const CONCURRENCY = 48;
const TIMEOUT_MS = 5_000;

/** Whose requests share limits and turns. */
interface Sender {
  /** Of the queue. */
  key: string;
  buckets: readonly TokenBucket[];
  name: string;
}

/**
 * Asks whether a request is allowed, for every sender in its turn: a pod that floods the proxy delays itself. The sender is the address. A
 * gateway sends for the agents of all namespaces from one address, so its requests count for the namespace and the agent that their delivery
 * tokens name. That a caller is a gateway, only the answer to an earlier request with the same token says.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #queue = new FairQueue(CONCURRENCY);
  readonly #addresses: LRUCache<string, TokenBucket>;
  readonly #agents: LRUCache<string, TokenBucket>;
  readonly #namespaces: LRUCache<string, TokenBucket>;
  /** Digests of tokens that a gateway confirmed as those of gateways, and has not rejected since. */
  readonly #gateways = new LRUCache<string, true>(entries(MAX_GATEWAY_TOKENS));

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const buckets = (limits: TokenBucketOptions): LRUCache<string, TokenBucket> =>
      new LRUCache({ ...entries(CACHE_SIZE), memoMethod: () => new TokenBucket(options.clock, limits) });
    this.#addresses = buckets(PER_ADDRESS);
    this.#agents = buckets(PER_AGENT);
    this.#namespaces = buckets(PER_NAMESPACE);
  }

  /** Throws TEMPER_RATE_LIMITED without asking; else what the authorizer throws, or the reason of the signal. */
  async authorize(request: ConnectionRequest, signal: AbortSignal): Promise<AuthorizedConnection> {
    const token = hash('sha256', request.token);
    const sender = this.#senderOf(request, token);
    takeFrom(sender);
    try {
      const authorized = await this.#queue.run(sender.key, () => this.#ask(request, signal));
      if (authorized.caller === 'Gateway') this.#gateways.set(token, true);
      return authorized;
    } catch (error) {
      if (isTemperError(error, 'TEMPER_TOKEN_INVALID')) this.#gateways.delete(token);
      throw error;
    }
  }

  async #ask(request: ConnectionRequest, signal: AbortSignal): Promise<AuthorizedConnection> {
    signal.throwIfAborted();
    const { clock, authorizer } = this.#options;
    return authorizer.authorize(request, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      deadline: clock.monotonic() + TIMEOUT_MS,
      key: 'authorize',
    });
  }

  #senderOf({ address, deliveryToken }: ConnectionRequest, token: string): Sender {
    const owner = this.#gateways.has(token) ? namedOwner(deliveryToken) : undefined;
    if (owner === undefined) return { key: address, buckets: [this.#addresses.memo(address)], name: 'this address' };
    const key = `${address} ${owner.namespace}`;
    return {
      key,
      buckets: [this.#agents.memo(`${address} ${owner.agentUid}`), this.#namespaces.memo(key)],
      name: `the agents of namespace ${owner.namespace} through this gateway`,
    };
  }
}

/** Takes from all buckets or from none. */
function takeFrom({ buckets, name }: Sender): void {
  const waitMs = Math.max(...buckets.map((bucket) => bucket.waitMs()));
  if (waitMs > 0) {
    throw new TemperError('TEMPER_RATE_LIMITED', `too many requests from ${name}`, { retry: Math.ceil(waitMs) });
  }
  for (const bucket of buckets) bucket.tryTake();
}
