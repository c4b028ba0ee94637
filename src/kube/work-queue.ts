import { type Clock, LONGEST_TIMER } from '../lib/clock.ts';
import type { Metrics } from './metrics.ts';
import type { RateLimiter } from './rate-limiter.ts';
import { PRIORITY, type Priority, ReadyKeys } from './ready-keys.ts';
import { WaitingKeys } from './waiting-keys.ts';

export interface WorkQueueOptions {
  /** Label of the queue in the metrics; the name of its controller. */
  name: string;
  clock: Clock;
  limiter: RateLimiter;
  metrics: Metrics;
}

/** A key handed to a worker, with the priority it was queued at. */
export interface Work {
  readonly key: string;
  readonly priority: Priority;
}

interface Dirty {
  priority: Priority;
  readonly since: number;
}

/**
 * Keys that need work. Every queued key is dirty and none of them is being processed. So no key is worked on twice at once,
 * and however often a key is added while it is processed, it is worked on exactly once more.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #labels: { name: string; controller: string };
  readonly #queue = new ReadyKeys();
  readonly #dirty = new Map<string, Dirty>();
  readonly #processing = new Map<string, number>();
  readonly #waiting = new WaitingKeys();
  readonly #idle: ((work: Work | undefined) => void)[] = [];
  readonly #drained: (() => void)[] = [];
  #timer: { readonly at: number; readonly abort: AbortController } | undefined;
  #shuttingDown = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#labels = { name: options.name, controller: options.name };
    this.#showDepth();
    for (const name of ['workqueue_adds_total', 'workqueue_retries_total'] as const) {
      options.metrics.count(name, this.#labels, 0);
    }
    options.metrics.watch('workqueue_unfinished_work_seconds', this.#labels, () => sum(this.#secondsInWork()));
    options.metrics.watch('workqueue_longest_running_processor_seconds', this.#labels, () =>
      Math.max(0, ...this.#secondsInWork()),
    );
  }

  /** Keys that wait for a worker; neither those in work nor those that wait for a time. */
  get length(): number {
    return this.#queue.size;
  }

  /** Asks for work on the key. A key that is asked for already gains the higher priority, nothing else. */
  add(key: string, priority: Priority = PRIORITY.change): void {
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

  /** The next key, as soon as there is one; undefined once the queue is shut down and empty. `done` must follow. */
  get(): Promise<Work | undefined> {
    const work = this.#take();
    if (work !== undefined || this.#shuttingDown) return Promise.resolve(work);
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** The worker let go of the key. It is queued again if it was added meanwhile. */
  done(key: string): void {
    const started = this.#processing.get(key);
    if (started === undefined) return;
    this.#processing.delete(key);
    const { clock, metrics } = this.#options;
    metrics.observe('workqueue_work_duration_seconds', this.#labels, (clock.monotonic() - started) / 1_000);
    const again = this.#dirty.get(key);
    if (again !== undefined) this.#enqueue(key, again.priority);
    this.#settleDrain();
  }

  /** Adds the key once `milliseconds` have passed; at once when there is nothing to wait for. The earlier of two times holds. */
  addAfter(key: string, milliseconds: number, priority: Priority = PRIORITY.change): void {
    if (this.#shuttingDown) return;
    if (!(milliseconds > 0)) {
      this.add(key, priority);
      return;
    }
    this.#waiting.add(key, this.#options.clock.monotonic() + milliseconds, priority);
    this.#arm();
  }

  /** Adds the key when its failures and those of all keys let it. */
  addRateLimited(key: string, priority: Priority = PRIORITY.change): void {
    if (this.#shuttingDown) return;
    this.#options.metrics.count('workqueue_retries_total', this.#labels);
    this.addAfter(key, this.#options.limiter.when(key), priority);
  }

  /** The failures of the key no longer count. Does not take it out of the queue. */
  forget(key: string): void {
    this.#options.limiter.forget(key);
  }

  numRequeues(key: string): number {
    return this.#options.limiter.failures(key);
  }

  /** Nothing more is added, what waits for a time is dropped; workers get what is queued, then undefined. */
  shutDown(): void {
    if (this.#shuttingDown) return;
    this.#shuttingDown = true;
    this.#waiting.clear();
    this.#timer?.abort.abort();
    this.#timer = undefined;
    for (const resolve of this.#idle.splice(0)) resolve(undefined);
  }

  /** Shuts down and resolves when nothing is queued or processed any more. Needs workers that go on taking. */
  shutDownWithDrain(): Promise<void> {
    this.shutDown();
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#settleDrain();
    });
  }

  #raise(key: string, known: Dirty, priority: Priority): void {
    known.priority = priority;
    this.#queue.raise(key);
    this.#showDepth();
  }

  #enqueue(key: string, priority: Priority): void {
    this.#queue.push(key, priority);
    this.#showDepth();
    const resolve = this.#idle.shift();
    if (resolve !== undefined) resolve(this.#take());
  }

  #take(): Work | undefined {
    const key = this.#queue.take();
    const dirty = key === undefined ? undefined : this.#dirty.get(key);
    if (key === undefined || dirty === undefined) return undefined;
    const { clock, metrics } = this.#options;
    const now = clock.monotonic();
    this.#processing.set(key, now);
    this.#dirty.delete(key);
    this.#showDepth();
    metrics.observe('workqueue_queue_duration_seconds', this.#labels, (now - dirty.since) / 1_000);
    return { key, priority: dirty.priority };
  }

  /** Keeps one timer, for the key that is ready first. */
  #arm(): void {
    const first = this.#waiting.first();
    if (first === undefined || (this.#timer !== undefined && this.#timer.at <= first.readyAt)) return;
    this.#timer?.abort.abort();
    const abort = new AbortController();
    this.#timer = { at: first.readyAt, abort };
    void this.#wake(first.readyAt, abort.signal);
  }

  async #wake(at: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      await clock.sleep(Math.min(Math.max(at - clock.monotonic(), 0), LONGEST_TIMER), signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    this.#timer = undefined;
    for (;;) {
      const ready = this.#waiting.takeReady(clock.monotonic());
      if (ready === undefined) break;
      this.add(ready.key, ready.priority);
    }
    this.#arm();
  }

  #secondsInWork(): number[] {
    const now = this.#options.clock.monotonic();
    return [...this.#processing.values()].map((started) => (now - started) / 1_000);
  }

  #settleDrain(): void {
    if (!this.#shuttingDown || this.#processing.size > 0 || this.#queue.size > 0) return;
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  #showDepth(): void {
    for (const priority of Object.values(PRIORITY)) {
      const labels = { ...this.#labels, priority: String(priority) };
      this.#options.metrics.gauge('workqueue_depth', labels, this.#queue.depth(priority));
    }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
