import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { onAbort } from '../../lib/async/abort.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { CallShares } from '../shares/call-shares.ts';
import { CallerTurns, type JobOwner } from '../shares/caller-turns.ts';
import { isFailure, type StartThread, type ThreadFailure, WorkerThread } from './worker-thread.ts';

export interface ThreadPoolOptions<Input, Output> {
  clock: Clock;
  startThread: StartThread;
  /** The plural noun of the jobs, for error messages. */
  noun: string;
  threads?: number;
  /** For one input. */
  timeoutMs?: number;
  /** Milliseconds of threads per agent: sustained per second, and at once. */
  share?: { perSecond: number; burst: number };
  /** The answer to an input that takes no thread; undefined for one that does. */
  runHere?: (input: Input) => Output | undefined;
}

const DEFAULT_THREADS = 2;
const DEFAULT_TIMEOUT_MS = 5_000;
/** A tenth of one thread, and one input that takes its whole timeout. */
const DEFAULT_SHARE = { perSecond: 100, burst: 5_000 };
/** Jobs that wait, or have a thread: one agent has five, and a namespace as many as are still free. */
const MAX_JOBS = { agent: 5, all: 64 };
const RETRY_MS = 1_000;
const CACHED_AGENTS = 20_000;

interface Job<Input, Output> extends JobOwner {
  input: () => Promise<Input>;
  signal: AbortSignal;
  result: PromiseWithResolvers<Output | 'timeout' | 'failed'>;
}

/**
 * A small pool of threads beside the one that serves requests. Namespaces take turns, and their agents within them; each agent has one
 * job in a thread at a time.
 */
export class ThreadPool<Input, Output extends object> implements AsyncDisposable {
  readonly #options: ThreadPoolOptions<Input, Output>;
  readonly #idle: WorkerThread<Input, Output>[];
  readonly #all: readonly WorkerThread<Input, Output>[];
  readonly #jobs: CallShares;
  readonly #time = new LRUCache<string, TokenBucket>({
    ...entries(CACHED_AGENTS),
    memoMethod: () => new TokenBucket(this.#options.clock, this.#options.share ?? DEFAULT_SHARE),
  });
  readonly #waiting = new CallerTurns<Job<Input, Output>>();
  readonly #busy = new Set<string>();
  readonly #closed = new AbortController();

  constructor(options: ThreadPoolOptions<Input, Output>) {
    this.#options = options;
    const { threads = DEFAULT_THREADS, startThread, noun } = options;
    this.#jobs = new CallShares({ ...MAX_JOBS, namespace: MAX_JOBS.all }, { noun, retryMs: RETRY_MS });
    this.#all = Array.from({ length: threads }, () => new WorkerThread<Input, Output>(startThread));
    this.#idle = [...this.#all];
  }

  /**
   * The answer of a thread to the input, which is asked for when it is the turn of the caller; `timeout` and `failed` are the fault of the
   * input. Throws TEMPER_RATE_LIMITED, TEMPER_OVERLOADED, TEMPER_CANCELLED when the signal aborts, and what `input` throws.
   */
  async run(
    { agentUid, namespace }: JobOwner,
    input: () => Promise<Input>,
    signal: AbortSignal,
  ): Promise<Output | 'timeout' | 'failed'> {
    const waitMs = this.#time.memo(agentUid).waitMs();
    if (waitMs > 0) throw this.#rateLimited(Math.ceil(waitMs));
    using _place = this.#jobs.take({ agentUid, namespace });
    const job: Job<Input, Output> = { agentUid, namespace, input, signal, result: Promise.withResolvers() };
    this.#waiting.add(job);
    using _cancellation = onAbort(signal, () => this.#drop(job));
    this.#assign();
    return await job.result.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    for (const job of this.#waiting.all()) this.#drop(job);
    await Promise.all(this.#all.map((thread) => thread.close()));
  }

  /** Removes a job that still waits; a running one ends by its signal. */
  #drop(job: Job<Input, Output>): void {
    if (this.#waiting.remove(job)) job.result.reject(this.#cancelled());
  }

  #assign(): void {
    for (;;) {
      const thread = this.#idle.pop();
      if (thread === undefined) return;
      const job = this.#waiting.next((agentUid) => this.#busy.has(agentUid));
      if (job === undefined) {
        this.#idle.push(thread);
        return;
      }
      void this.#run(job, thread);
    }
  }

  async #run(job: Job<Input, Output>, thread: WorkerThread<Input, Output>): Promise<void> {
    const { agentUid, result } = job;
    this.#busy.add(agentUid);
    let mustClose = false;
    try {
      const signal = AbortSignal.any([job.signal, this.#closed.signal]);
      const input = await job.input();
      const answer = this.#runHere(agentUid, input) ?? (await this.#runIn(thread, agentUid, input, signal));
      mustClose = isFailure(answer) || answer === 'not-started';
      if (answer === 'cancelled') result.reject(this.#cancelled());
      else if (answer === 'not-started') result.reject(this.#notStarted());
      else result.resolve(answer);
    } catch (error) {
      result.reject(error);
    }
    this.#busy.delete(agentUid);
    // The caller does not wait for the end of a thread that failed; its place in the pool does.
    if (mustClose) await thread.close();
    this.#idle.push(thread);
    this.#assign();
  }

  #runHere(agentUid: string, input: Input): Output | undefined {
    const startedAt = this.#options.clock.monotonic();
    const answer = this.#options.runHere?.(input);
    if (answer !== undefined) this.#charge(agentUid, startedAt);
    return answer;
  }

  async #runIn(
    thread: WorkerThread<Input, Output>,
    agentUid: string,
    input: Input,
    signal: AbortSignal,
  ): Promise<Output | ThreadFailure | 'not-started'> {
    const unready = await thread.ready(signal);
    if (unready !== undefined) return unready === 'cancelled' ? unready : 'not-started';
    const startedAt = this.#options.clock.monotonic();
    const answer = await thread.run(input, this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS, signal);
    this.#charge(agentUid, startedAt);
    return answer;
  }

  #charge(agentUid: string, startedAt: number): void {
    this.#time.memo(agentUid).reserve(this.#options.clock.monotonic() - startedAt);
  }

  #rateLimited(waitMs: number): TemperError {
    const message = `the ${this.#options.noun} of this agent took more time than its share; retry after the stated time`;
    return new TemperError('TEMPER_RATE_LIMITED', message, { retry: Math.max(waitMs, RETRY_MS) });
  }

  #cancelled(): TemperError {
    return new TemperError('TEMPER_CANCELLED', `the caller of the ${this.#options.noun} has left`);
  }

  #notStarted(): TemperError {
    return new TemperError('TEMPER_OVERLOADED', `no thread could be started for the ${this.#options.noun}`, {
      retry: RETRY_MS,
    });
  }
}
