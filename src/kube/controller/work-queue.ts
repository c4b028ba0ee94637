import { type Clock, MAX_TIMER_MS } from '../../lib/clock.ts';
import type { Metrics } from '../metrics.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { PRIORITY, type Priority, PriorityFifo, type RankOf } from './priority-fifo.ts';
import { DelayingQueue } from './delaying-queue.ts';

export interface WorkQueueOptions {
  /** The name of the controller; the label of the queue in the metrics. */
  name: string;
  clock: Clock;
  limiter: RateLimiter;
  metrics: Metrics;
  /** Which keys of a namespace come first; absent: the oldest. Asked when a key becomes ready. Must not throw. */
  rankOf?: RankOf;
}

/** A key for a worker, with the priority with which it was queued. */
export interface WorkItem {
  readonly key: string;
  readonly priority: Priority;
}

interface DirtyKey {
  priority: Priority;
  readonly since: number;
}

/**
 * A deduplicating work queue with priorities, as client-go's workqueue, whose namespaces take turns, and whose keys have a rank within their namespace. Invariant: every queued key is
 * dirty, and no queued key is being processed. So a key is never processed by two workers at the same time, and a key that is added any number of times while it is processed is
 * processed exactly once more.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #labels: { name: string; controller: string };
  readonly #queue: PriorityFifo;
  readonly #dirty = new Map<string, DirtyKey>();
  readonly #processing = new Map<string, number>();
  readonly #delayed = new DelayingQueue();
  readonly #idle: ((work: WorkItem | undefined) => void)[] = [];
  readonly #drained: (() => void)[] = [];
  #timer: { readonly at: number; readonly abort: AbortController } | undefined;
  #shuttingDown = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#queue = new PriorityFifo(options.rankOf);
    this.#labels = { name: options.name, controller: options.name };
    this.#reportDepth();
    for (const name of ['workqueue_adds_total', 'workqueue_retries_total'] as const) {
      options.metrics.count(name, this.#labels, 0);
    }
    options.metrics.watch('workqueue_unfinished_work_seconds', this.#labels, () => sum(this.#processingSeconds()));
    options.metrics.watch('workqueue_longest_running_processor_seconds', this.#labels, () =>
      Math.max(0, ...this.#processingSeconds()),
    );
  }

  /** The number of queued keys, without keys in process and delayed keys. */
  get length(): number {
    return this.#queue.size;
  }

  /** Adds the key. A key that is already dirty is not added again; it only gets the higher of the two priorities. */
  add(key: string, priority: Priority = PRIORITY.normal): void {
    if (this.#shuttingDown) return;
    const known = this.#dirty.get(key);
    if (known !== undefined) {
      if (priority > known.priority) this.#raise(key, known, priority);
      return;
    }
    const { clock, metrics } = this.#options;
    this.#dirty.set(key, { priority, since: clock.monotonic() });
    metrics.count('workqueue_adds_total', this.#labels);
    if (!this.#processing.has(key)) this.#enqueue(key, priority);
  }

  /** Waits for the next key; undefined when the queue is shut down and empty. The worker must call `done` for the key. */
  get(): Promise<WorkItem | undefined> {
    const work = this.#take();
    if (work !== undefined || this.#shuttingDown) return Promise.resolve(work);
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Ends the processing of the key. It is queued again if it was added in the meantime. */
  done(key: string): void {
    const started = this.#processing.get(key);
    if (started === undefined) return;
    this.#processing.delete(key);
    const { clock, metrics } = this.#options;
    metrics.observe('workqueue_work_duration_seconds', this.#labels, (clock.monotonic() - started) / 1_000);
    const dirty = this.#dirty.get(key);
    if (dirty !== undefined) this.#enqueue(key, dirty.priority);
    this.#resolveDrain();
  }

  /** Adds the key after `milliseconds`; immediately when that is not positive. A key that is already delayed keeps the earlier time. */
  addAfter(key: string, milliseconds: number, priority: Priority = PRIORITY.normal): void {
    if (this.#shuttingDown) return;
    if (!(milliseconds > 0)) {
      this.add(key, priority);
      return;
    }
    this.#delayed.add(key, this.#options.clock.monotonic() + milliseconds, priority);
    this.#scheduleTimer();
  }

  /** Adds the key after the delay of the rate limiter; counts one failure of the key. */
  addRateLimited(key: string, priority: Priority = PRIORITY.normal): void {
    if (this.#shuttingDown) return;
    this.#options.metrics.count('workqueue_retries_total', this.#labels);
    this.addAfter(key, this.#options.limiter.when(key), priority);
  }

  /** Resets the failures of the key. Does not remove it from the queue. */
  forget(key: string): void {
    this.#options.limiter.forget(key);
  }

  numRequeues(key: string): number {
    return this.#options.limiter.failures(key);
  }

  /** Rejects further keys and drops delayed keys; workers get the queued keys, then undefined. */
  shutDown(): void {
    if (this.#shuttingDown) return;
    this.#shuttingDown = true;
    this.#delayed.clear();
    this.#timer?.abort.abort();
    this.#timer = undefined;
    for (const resolve of this.#idle.splice(0)) resolve(undefined);
  }

  /** Shuts down and resolves when no key is queued or in process. Requires workers that continue to call `get`. */
  shutDownWithDrain(): Promise<void> {
    this.shutDown();
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#resolveDrain();
    });
  }

  #raise(key: string, known: DirtyKey, priority: Priority): void {
    known.priority = priority;
    this.#queue.raise(key);
    this.#reportDepth();
  }

  #enqueue(key: string, priority: Priority): void {
    this.#queue.push(key, priority);
    this.#reportDepth();
    const resolve = this.#idle.shift();
    if (resolve !== undefined) resolve(this.#take());
  }

  #take(): WorkItem | undefined {
    const key = this.#queue.take();
    const dirty = key === undefined ? undefined : this.#dirty.get(key);
    if (key === undefined || dirty === undefined) return undefined;
    const { clock, metrics } = this.#options;
    const now = clock.monotonic();
    this.#processing.set(key, now);
    this.#dirty.delete(key);
    this.#reportDepth();
    metrics.observe('workqueue_queue_duration_seconds', this.#labels, (now - dirty.since) / 1_000);
    return { key, priority: dirty.priority };
  }

  /** Keeps a single timer, for the delayed key with the earliest time. */
  #scheduleTimer(): void {
    const first = this.#delayed.peek();
    if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;
    this.#timer?.abort.abort();
    const abort = new AbortController();
    this.#timer = { at: first.readyAt, abort };
    void this.#addReadyKeysAt(first.readyAt, abort.signal);
  }

  async #addReadyKeysAt(at: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      await clock.sleep(Math.min(Math.max(at - clock.monotonic(), 0), MAX_TIMER_MS), signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    this.#timer = undefined;
    for (;;) {
      const ready = this.#delayed.popReady(clock.monotonic());
      if (ready === undefined) break;
      this.add(ready.key, ready.priority);
    }
    this.#scheduleTimer();
  }

  #processingSeconds(): number[] {
    const now = this.#options.clock.monotonic();
    return [...this.#processing.values()].map((started) => (now - started) / 1_000);
  }

  #resolveDrain(): void {
    if (!this.#shuttingDown || this.#processing.size > 0 || this.#queue.size > 0) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  #reportDepth(): void {
    for (const priority of Object.values(PRIORITY)) {
      const labels = { ...this.#labels, priority: String(priority) };
      this.#options.metrics.gauge('workqueue_depth', labels, this.#queue.depth(priority));
    }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
