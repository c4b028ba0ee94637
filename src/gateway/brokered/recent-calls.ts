import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { abortable } from '../../lib/async/abort.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';

interface RecentCall<T> {
  /** Of the tool and its arguments. */
  question: Digest;
  /** The answer, and its size in characters. */
  answer: Promise<{ value: T; size: number }>;
  /** Ends the work. */
  cancel: AbortController;
  waiting: number;
}

/** Answers are kept for a client that repeats a request whose answer was lost. */
const MAX_CALLS = 2_000;
const MAX_CHARACTERS = 32 * 1_024 * 1_024;
const CACHE_TTL_MS = 10 * 60_000;
/** How long work goes on for which no client waits: the client may connect again. */
const GRACE_MS = 5_000;

/** The calls that this process executes, or executed a short time ago: a request that is repeated with its key gets the answer of the first one. */
export class RecentCalls<T> {
  readonly #clock: Clock;
  readonly #running = new Map<string, RecentCall<T>>();
  readonly #answered: LRUCache<string, RecentCall<T>>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#answered = new LRUCache({ max: MAX_CALLS, maxSize: MAX_CHARACTERS, ttl: CACHE_TTL_MS });
  }

  has(key: string): boolean {
    return this.#running.has(key) || this.#answered.has(key);
  }

  /**
   * The answer of the work for this key, which runs once. It is cancelled when all who waited for it have gone for some seconds. A failure is
   * not kept. Throws TEMPER_REQUEST_INVALID for a key of another question.
   */
  async once(
    key: string,
    question: Digest,
    disconnected: AbortSignal,
    work: (signal: AbortSignal) => Promise<{ value: T; size: number }>,
  ): Promise<T> {
    const call = this.#running.get(key) ?? this.#answered.get(key) ?? this.#start(key, question, work);
    if (call.question !== question)
      throw new TemperError('TEMPER_REQUEST_INVALID', 'this idempotency key belongs to another call');
    call.waiting += 1;
    try {
      return (await abortable(call.answer, disconnected)).value;
    } finally {
      call.waiting -= 1;
      if (disconnected.aborted) void this.#cancelLater(call);
    }
  }

  #start(
    key: string,
    question: Digest,
    work: (signal: AbortSignal) => Promise<{ value: T; size: number }>,
  ): RecentCall<T> {
    const cancel = new AbortController();
    const answer = work(cancel.signal);
    const call: RecentCall<T> = { question, answer, cancel, waiting: 0 };
    this.#running.set(key, call);
    void this.#keep(key, call);
    return call;
  }

  async #keep(key: string, call: RecentCall<T>): Promise<void> {
    try {
      const { size } = await call.answer;
      this.#answered.set(key, call, { size: Math.max(1, size) });
    } catch {
      // Those who wait for it get the failure.
    } finally {
      this.#running.delete(key);
    }
  }

  async #cancelLater(call: RecentCall<T>): Promise<void> {
    await this.#clock.sleep(GRACE_MS, call.cancel.signal).catch(() => undefined);
    if (call.waiting === 0) call.cancel.abort(new Error('no client waits for the answer'));
  }
}
