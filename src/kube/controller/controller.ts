import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Metrics } from '../metrics.ts';
import { isConflict, isExpected, type ReconcileResult, TerminalError } from './result.ts';
import type { WorkItem, WorkQueue } from './work-queue.ts';

export interface ReconcileContext {
  /** Aborted when this reconcile times out, or when the controller stops and its grace period has passed. */
  readonly signal: AbortSignal;
  /** Logs with the controller, the key and the id of this reconcile. */
  readonly log: Logger;
}

export interface ControllerOptions {
  name: string;
  /** The controller takes its keys from this queue, and shuts it down. */
  queue: WorkQueue;
  reconcile: (key: string, context: ReconcileContext) => Promise<ReconcileResult>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Generates an id per reconcile, for the log. */
  newId: () => string;
  /** The maximum number of concurrent reconciles; default 1. */
  concurrency?: number;
  /** The timeout of a reconcile, in milliseconds, after which its signal aborts; default 90,000. */
  timeoutMs?: number;
}

/** Longer than the timeout of one request, which names the request. */
const DEFAULT_TIMEOUT_MS = 90_000;
const DEFAULT_GRACE_MS = 30_000;
/** A reconcile that changes nothing makes no request and takes up to a millisecond, so thousands of them would block the event loop. */
const MAX_RECONCILES_PER_TURN = 16;

/** A reason of its own: without one, each `abort` creates an error with a stack. */
const DONE = 'the reconcile has ended';

/** The result of a reconcile, or the error that it threw instead of returning it. */
type RunResult = ReconcileResult | { readonly kind: 'threw'; readonly error: unknown };

/** Workers that take keys from the queue and reconcile them. Level-triggered: a key names an object, not an event. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #labels: { controller: string };
  readonly #stopping = new AbortController();
  #workers: Promise<void>[] = [];
  #active = 0;
  #reconcilesInTurn = 0;
  /** All workers wait for the next turn of the event loop. */
  #nextTurn: Promise<void> | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#labels = { controller: options.name };
  }

  /** Starts the workers. A second call does nothing. */
  start(): void {
    if (this.#workers.length > 0) return;
    const concurrency = this.#options.concurrency ?? 1;
    this.#initSeries(concurrency);
    this.#workers = Array.from({ length: concurrency }, () => this.#work());
  }

  /**
   * Shuts the queue down and lets the workers finish the queued keys. After `graceMs` the signals of running reconciles abort and the rest of
   * the queue is skipped. Resolves to true when all keys were reconciled in time.
   */
  async stop(graceMs: number = DEFAULT_GRACE_MS): Promise<boolean> {
    this.#options.queue.shutDown();
    const timer = new AbortController();
    const finished = Promise.all(this.#workers).then(() => true);
    const timedOut = elapsed(this.#options.clock, graceMs, timer.signal).then((hasElapsed) => !hasElapsed);
    const inTime = await Promise.race([finished, timedOut]);
    timer.abort();
    if (!inTime) this.#stopping.abort();
    return inTime;
  }

  async #work(): Promise<void> {
    const { queue } = this.#options;
    for (;;) {
      const work = await queue.get();
      if (work === undefined) return;
      await this.#takeTurn();
      try {
        if (!this.#stopping.signal.aborted) await this.#reconcile(work);
      } finally {
        queue.done(work.key);
      }
    }
  }

  /** Lets requests, timers and the Lease proceed after some reconciles. */
  async #takeTurn(): Promise<void> {
    while (this.#nextTurn !== undefined) await this.#nextTurn;
    this.#reconcilesInTurn += 1;
    if (this.#reconcilesInTurn < MAX_RECONCILES_PER_TURN) return;
    this.#nextTurn = new Promise((resolve) => {
      setImmediate(() => {
        this.#nextTurn = undefined;
        this.#reconcilesInTurn = 0;
        resolve();
      });
    });
  }

  async #reconcile(work: WorkItem): Promise<void> {
    const { clock, metrics, newId } = this.#options;
    const log = this.#options.log.child({ controller: this.#options.name, key: work.key, reconcile: newId() });
    const started = clock.monotonic();
    this.#reportActive(1);
    const result = await this.#run(work.key, log);
    this.#reportActive(-1);
    metrics.observe('controller_runtime_reconcile_time_seconds', this.#labels, (clock.monotonic() - started) / 1_000);
    this.#handleResult(work, result, log);
  }

  /**
   * Waits also for a reconcile that ignores its signal: releasing the key earlier would allow a second, concurrent reconcile of the same
   * object.
   */
  async #run(key: string, log: Logger): Promise<RunResult> {
    const { reconcile, timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const { signal: stopping } = this.#stopping;
    const aborted = new AbortController();
    const done = new AbortController();
    // Not `AbortSignal.any`, which makes sets, weak references and a finalizer for each reconcile, and takes three times as long.
    using _stopping = onAbort(stopping, () => aborted.abort(stopping.reason));
    void this.#abortAfter(timeoutMs, aborted, done.signal);
    try {
      return await reconcile(key, { signal: aborted.signal, log });
    } catch (error) {
      // After an abort a throw is expected: the calls that the reconcile awaits reject.
      return { kind: aborted.signal.aborted || isExpected(error) ? 'failed' : 'threw', error };
    } finally {
      done.abort(DONE);
    }
  }

  async #abortAfter(timeoutMs: number, aborted: AbortController, done: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#options;
    if (!(await elapsed(clock, timeoutMs, done))) return;
    metrics.count('controller_runtime_reconcile_timeouts_total', this.#labels);
    aborted.abort(new DOMException(`the reconcile did not end within ${timeoutMs} ms`, 'TimeoutError'));
  }

  #handleResult(work: WorkItem, result: RunResult, log: Logger): void {
    const { queue } = this.#options;
    switch (result.kind) {
      case 'done':
        queue.forget(work.key);
        this.#countResult('success');
        return;
      case 'requeueAfter':
        queue.forget(work.key);
        queue.addAfter(work.key, result.afterMs, work.priority);
        this.#countResult('requeue_after');
        return;
      case 'failed':
      case 'threw':
        this.#handleFailure(work, result, log);
    }
  }

  #handleFailure(work: WorkItem, failure: { kind: 'failed' | 'threw'; error: unknown }, log: Logger): void {
    const { queue, metrics } = this.#options;
    const { error } = failure;
    if (isConflict(error)) {
      log.info({ error }, 'write conflict; requeueing');
      queue.addRateLimited(work.key, work.priority);
      this.#countResult('requeue');
      return;
    }
    metrics.count('controller_runtime_reconcile_errors_total', this.#labels);
    this.#countResult('error');
    if (error instanceof TerminalError) {
      metrics.count('controller_runtime_terminal_reconcile_errors_total', this.#labels);
      queue.forget(work.key);
      log.error({ error }, 'reconcile failed with a terminal error; not retrying until the object changes');
      return;
    }
    if (failure.kind === 'threw') metrics.count('controller_runtime_reconcile_panics_total', this.#labels);
    queue.addRateLimited(work.key, work.priority);
    log.error({ error, failures: queue.numRequeues(work.key) }, 'reconcile failed; requeueing');
  }

  #countResult(result: (typeof RESULTS)[number], by = 1): void {
    this.#options.metrics.count('controller_runtime_reconcile_total', { ...this.#labels, result }, by);
  }

  #reportActive(change: number): void {
    this.#active += change;
    this.#options.metrics.gauge('controller_runtime_active_workers', this.#labels, this.#active);
  }

  /** Initialises every series with zero: `rate()` over a series that starts at its first failure would miss that failure. */
  #initSeries(concurrency: number): void {
    const { metrics } = this.#options;
    for (const result of RESULTS) this.#countResult(result, 0);
    for (const name of FAILURE_COUNTERS) metrics.count(name, this.#labels, 0);
    metrics.gauge('controller_runtime_max_concurrent_reconciles', this.#labels, concurrency);
    this.#reportActive(0);
  }
}

const RESULTS = ['success', 'error', 'requeue', 'requeue_after'] as const;

const FAILURE_COUNTERS = [
  'controller_runtime_reconcile_errors_total',
  'controller_runtime_terminal_reconcile_errors_total',
  'controller_runtime_reconcile_panics_total',
  'controller_runtime_reconcile_timeouts_total',
] as const;

/** Resolves to true when the time has passed, to false when the signal aborts first. */
async function elapsed(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(milliseconds, signal);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
