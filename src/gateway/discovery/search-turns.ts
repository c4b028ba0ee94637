import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { SearchSteps } from '../../discovery/lexical/steps.ts';
import { onAbort } from '../../lib/async/abort.ts';
import { TokenBucket, type TokenBucketOptions } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { CallShares, type Shares } from '../shares/call-shares.ts';
import { CallerTurns, type JobOwner } from '../shares/caller-turns.ts';

export interface SearchTurnsOptions {
  clock: Pick<Clock, 'monotonic'>;
  /** Milliseconds of the serving thread: sustained per second, and at once. */
  time?: { agent: TokenBucketOptions; namespace: TokenBucketOptions };
  /** Searches that wait or are in work. */
  places?: Shares;
}

/** An agent has a tenth of the serving thread, and a namespace a half. */
const DEFAULT_TIME = {
  agent: { perSecond: 100, burst: 2_000 },
  namespace: { perSecond: 500, burst: 10_000 },
};
/** A search in work holds less than a megabyte. A namespace has as many places as are still free. */
const DEFAULT_PLACES: Shares = { agent: 8, namespace: 32, all: 32 };
/** A turn ends after the step in which it has taken so long. */
const TURN_MS = 4;
const RETRY_MS = 1_000;
const CACHED_ACCOUNTS = 20_000;
const NOUN = 'searches for capabilities';

interface SearchJob extends JobOwner {
  /** Does the next step; true when the search is over. */
  step: () => boolean;
}

/**
 * Searches of agents in the thread that serves requests. A search has turns of some milliseconds, and other requests are served after each
 * turn. Namespaces take turns, and their agents within them; each has a share of time.
 */
export class SearchTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #places: CallShares;
  readonly #time: { agent: LRUCache<string, TokenBucket>; namespace: LRUCache<string, TokenBucket> };
  readonly #waiting = new CallerTurns<SearchJob>();
  #isWorking = false;

  constructor({ clock, time = DEFAULT_TIME, places = DEFAULT_PLACES }: SearchTurnsOptions) {
    this.#clock = clock;
    this.#places = new CallShares(places, { noun: NOUN, retryMs: RETRY_MS });
    const buckets = (share: TokenBucketOptions) =>
      new LRUCache<string, TokenBucket>({
        ...entries(CACHED_ACCOUNTS),
        memoMethod: () => new TokenBucket(clock, share),
      });
    this.#time = { agent: buckets(time.agent), namespace: buckets(time.namespace) };
  }

  /**
   * The result of the steps, whose time is charged to their owner. Throws TEMPER_RATE_LIMITED with the time to wait, TEMPER_CANCELLED when the
   * signal aborts, and what a step throws.
   */
  async run<Result>(
    { agentUid, namespace }: JobOwner,
    steps: SearchSteps<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    this.#requireTime({ agentUid, namespace });
    using _place = this.#places.take({ agentUid, namespace });
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const step = (): boolean => {
      try {
        const next = steps.next();
        if (next.done === true) resolve(next.value);
        return next.done === true;
      } catch (error) {
        reject(error);
        return true;
      }
    };
    const job: SearchJob = { agentUid, namespace, step };
    this.#waiting.add(job);
    using _cancellation = onAbort(signal, () => {
      if (this.#waiting.remove(job)) reject(new TemperError('TEMPER_CANCELLED', `the caller of the ${NOUN} has left`));
    });
    void this.#work();
    return await promise;
  }

  #requireTime({ agentUid, namespace }: JobOwner): void {
    const ofAgent = this.#time.agent.memo(agentUid).waitMs();
    const ofNamespace = this.#time.namespace.memo(namespace).waitMs();
    const waitMs = Math.max(ofAgent, ofNamespace);
    if (waitMs === 0) return;
    const owner = ofAgent >= ofNamespace ? 'agent' : 'namespace';
    const message = `the ${NOUN} of this ${owner} took more time than its share; retry after the stated time`;
    throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: Math.max(Math.ceil(waitMs), RETRY_MS) });
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    for (let job = this.#next(); job !== undefined; job = this.#next()) {
      if (!this.#turn(job)) this.#waiting.addFirst(job);
      await setImmediate();
    }
    this.#isWorking = false;
  }

  #next(): SearchJob | undefined {
    return this.#waiting.next(() => false);
  }

  /** Returns true when the search is over. */
  #turn({ agentUid, namespace, step }: SearchJob): boolean {
    const startedAt = this.#clock.monotonic();
    let isOver = false;
    let taken = 0;
    while (!isOver && taken < TURN_MS) {
      isOver = step();
      taken = this.#clock.monotonic() - startedAt;
    }
    this.#time.agent.memo(agentUid).reserve(taken);
    this.#time.namespace.memo(namespace).reserve(taken);
    return isOver;
  }
}
