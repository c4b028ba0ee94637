import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Metrics } from './metrics.ts';
import { isConflict, type Outcome, TerminalError } from './outcome.ts';
import type { Work, WorkQueue } from './work-queue.ts';

interface ReconcileContext {
  /** Aborted when the time of this reconcile is over or the controller gives up waiting for it. */
  readonly signal: AbortSignal;
  /** Carries the controller, the key and the id of this reconcile. */
  readonly log: Logger;
}

export interface ControllerOptions {
  name: string;
  /** The queue the controller works on and shuts down. */
  queue: WorkQueue;
  reconcile: (key: string, context: ReconcileContext) => Promise<Outcome>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** An id for each reconcile, for the log. */
  newId: () => string;
  /** Keys worked on at once. */
  concurrency?: number;
  /** Milliseconds a reconcile may take before it is told to stop; a minute when not given. */
  timeout?: number;
}

const DEFAULT_TIMEOUT = 60_000;
const DEFAULT_GRACE = 30_000;

/** How one reconcile ended, for the metrics and the queue. */
type Ending = Outcome | { readonly kind: 'panicked'; readonly error: unknown };

/** Workers that take keys from the queue and reconcile them. It reconciles states, not events: a key says only where to look. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #labels: { controller: string };
  readonly #stopping = new AbortController();
  #workers: Promise<void>[] = [];
  #active = 0;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#labels = { controller: options.name };
  }

  /** Starts the workers. A second call does nothing. */
  start(): void {
    if (this.#workers.length > 0) return;
    const concurrency = this.#options.concurrency ?? 1;
    this.#showZeros(concurrency);
    this.#workers = Array.from({ length: concurrency }, () => this.#work());
  }

  /**
   * Takes nothing more in and lets the workers finish what is queued. After `grace` milliseconds the reconciles that
   * still run are told to stop and the rest of the queue is left. Resolves to whether everything was finished.
   */
  async stop(grace: number = DEFAULT_GRACE): Promise<boolean> {
    this.#options.queue.shutDown();
    const patience = new AbortController();
    const finished = Promise.all(this.#workers).then(() => true);
    const tired = elapsed(this.#options.clock, grace, patience.signal).then((over) => !over);
    const inTime = await Promise.race([finished, tired]);
    patience.abort();
    if (!inTime) this.#stopping.abort();
    return inTime;
  }

  async #work(): Promise<void> {
    const { queue } = this.#options;
    for (;;) {
      const work = await queue.get();
      if (work === undefined) return;
      try {
        if (!this.#stopping.signal.aborted) await this.#reconcile(work);
      } finally {
        queue.done(work.key);
      }
    }
  }

  async #reconcile(work: Work): Promise<void> {
    const { clock, metrics, newId } = this.#options;
    const log = this.#options.log.child({ controller: this.#options.name, key: work.key, reconcile: newId() });
    const started = clock.monotonic();
    this.#showActive(1);
    const ending = await this.#run(work.key, log);
    this.#showActive(-1);
    metrics.observe('controller_runtime_reconcile_time_seconds', this.#labels, (clock.monotonic() - started) / 1_000);
    this.#settle(work, ending, log);
  }

  /**
   * A reconcile that does not heed its signal is waited for all the same: with its key let go, a second worker would
   * stand beside it.
   */
  async #run(key: string, log: Logger): Promise<Ending> {
    const { reconcile, timeout = DEFAULT_TIMEOUT } = this.#options;
    const late = new AbortController();
    const over = new AbortController();
    void this.#limit(timeout, late, over.signal);
    try {
      return await reconcile(key, { signal: AbortSignal.any([late.signal, this.#stopping.signal]), log });
    } catch (error) {
      // Told to stop, a reconcile may throw: what it awaits rejects.
      const told = late.signal.aborted || this.#stopping.signal.aborted;
      return { kind: told ? 'failed' : 'panicked', error };
    } finally {
      over.abort();
    }
  }

  async #limit(timeout: number, late: AbortController, over: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#options;
    if (!(await elapsed(clock, timeout, over))) return;
    metrics.count('controller_runtime_reconcile_timeouts_total', this.#labels);
    late.abort(new DOMException(`no end after ${timeout} ms`, 'TimeoutError'));
  }

  #settle(work: Work, ending: Ending, log: Logger): void {
    const { queue } = this.#options;
    switch (ending.kind) {
      case 'done':
        queue.forget(work.key);
        this.#countResult('success');
        return;
      case 'again':
        queue.forget(work.key);
        queue.addAfter(work.key, ending.after, work.priority);
        this.#countResult('requeue_after');
        return;
      case 'failed':
      case 'panicked':
        this.#settleFailure(work, ending, log);
    }
  }

  #settleFailure(work: Work, ending: { kind: 'failed' | 'panicked'; error: unknown }, log: Logger): void {
    const { queue, metrics } = this.#options;
    const { error } = ending;
    if (isConflict(error)) {
      log.info({ error }, 'the object was written meanwhile; reading it again');
      queue.addRateLimited(work.key, work.priority);
      this.#countResult('requeue');
      return;
    }
    metrics.count('controller_runtime_reconcile_errors_total', this.#labels);
    this.#countResult('error');
    if (error instanceof TerminalError) {
      metrics.count('controller_runtime_terminal_reconcile_errors_total', this.#labels);
      queue.forget(work.key);
      log.error({ error }, 'reconcile failed for good; it waits for a change');
      return;
    }
    if (ending.kind === 'panicked') metrics.count('controller_runtime_reconcile_panics_total', this.#labels);
    queue.addRateLimited(work.key, work.priority);
    log.error({ error, failures: queue.numRequeues(work.key) }, 'reconcile failed; it is tried again');
  }

  #countResult(result: (typeof RESULTS)[number], by = 1): void {
    this.#options.metrics.count('controller_runtime_reconcile_total', { ...this.#labels, result }, by);
  }

  #showActive(change: number): void {
    this.#active += change;
    this.#options.metrics.gauge('controller_runtime_active_workers', this.#labels, this.#active);
  }

  /** A rate over a series that begins with its first failure misses that failure; so every series begins at zero. */
  #showZeros(concurrency: number): void {
    const { metrics } = this.#options;
    for (const result of RESULTS) this.#countResult(result, 0);
    for (const name of FAILURE_COUNTERS) metrics.count(name, this.#labels, 0);
    metrics.gauge('controller_runtime_max_concurrent_reconciles', this.#labels, concurrency);
    this.#showActive(0);
  }
}

const RESULTS = ['success', 'error', 'requeue', 'requeue_after'] as const;

const FAILURE_COUNTERS = [
  'controller_runtime_reconcile_errors_total',
  'controller_runtime_terminal_reconcile_errors_total',
  'controller_runtime_reconcile_panics_total',
  'controller_runtime_reconcile_timeouts_total',
] as const;

/** Resolves to true once the time has passed, to false when the signal ends the wait before. */
async function elapsed(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(milliseconds, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
