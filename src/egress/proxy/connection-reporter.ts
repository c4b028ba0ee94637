import { MAX_REPORTED_CONNECTIONS } from '../../gateway-api/egress/report-limits.ts';
import { Notifier } from '../../lib/async/notifier.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Authorizer, EndedConnection } from '../authorizer.ts';
import type { OpenConnection } from './open-connection.ts';
import type { OpenConnections } from './open-connections.ts';

export interface ConnectionReporterOptions {
  clock: Clock;
  log: Logger;
  authorizer: Pick<Authorizer, 'report'>;
  connections: Pick<OpenConnections, 'reportable' | 'reported' | 'endAll'>;
}

const INTERVAL_MS = 1_500;
/** After a report that failed. */
const RETRY_MS = 500;
const REPORT_TIMEOUT_MS = 1_000;
/**
 * Without a report that began so lately and succeeded, no connection stays open: the proxy alone cannot know whether it may. It is the
 * longest time that an agent keeps connections after its gateway knows of its suspension.
 */
const MAX_SILENCE_MS = 4_000;

/**
 * Reports the bytes of all connections at an interval, and earlier when one of them waits for it, and ends the connections that may not stay
 * open. When no report succeeds, it ends all of them.
 */
export class ConnectionReporter {
  readonly #options: ConnectionReporterOptions;
  readonly #due = new Notifier();
  #isDue = false;
  /** When the last report began that succeeded: what it confirms was true then. */
  #confirmedAt: number;
  /** Undefined before the first report. */
  #hasGateway: boolean | undefined;

  constructor(options: ConnectionReporterOptions) {
    this.#options = options;
    this.#confirmedAt = options.clock.monotonic();
  }

  /** A gateway took the last report. Before that, and without it, the replica cannot allow a connection. */
  get hasGateway(): boolean {
    return this.#hasGateway === true;
  }

  /** A report must not wait for its regular time. */
  due(): void {
    this.#isDue = true;
    this.#due.notifyAll();
  }

  /** Reports at once, until the signal aborts, and once more then. */
  async run(signal: AbortSignal): Promise<void> {
    const watching = this.#endInSilence(signal);
    do {
      await this.#reportAll();
      await this.#wait(signal);
    } while (!signal.aborted);
    await this.#reportAll();
    await watching;
  }

  async #endInSilence(signal: AbortSignal): Promise<void> {
    const { clock, connections } = this.#options;
    while (!signal.aborted) {
      const left = this.#confirmedAt + MAX_SILENCE_MS - clock.monotonic();
      if (left <= 0) {
        connections.endAll(
          new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'no gateway confirms that the connection may stay'),
        );
      }
      await clock.sleep(left > 0 ? left : RETRY_MS, signal).catch(() => undefined);
    }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    if (this.#isDue) return;
    const waiting = new AbortController();
    const either = AbortSignal.any([signal, waiting.signal]);
    const interval = this.#hasGateway === true ? INTERVAL_MS : RETRY_MS;
    const slept = this.#options.clock.sleep(interval, either).catch(() => undefined);
    await Promise.race([slept, this.#due.wait(either)]);
    waiting.abort();
  }

  async #reportAll(): Promise<void> {
    const { connections, clock, log } = this.#options;
    this.#isDue = false;
    const began = clock.monotonic();
    const all = connections.reportable;
    const size = MAX_REPORTED_CONNECTIONS;
    // Also without connections: the answer says whether this replica can allow one.
    const batches = Array.from({ length: Math.max(1, Math.ceil(all.length / size)) }, (_, index) =>
      all.slice(index * size, (index + 1) * size),
    );
    const results = await Promise.allSettled(batches.map((batch) => this.#report(batch)));
    const failed = results.find((result) => result.status === 'rejected');
    const mustLog = this.#hasGateway !== false || all.length > 0;
    this.#hasGateway = failed === undefined;
    if (failed === undefined) this.#confirmedAt = began;
    else if (mustLog) log.warn({ error: failed.reason }, 'connections could not be reported; it will be retried');
  }

  async #report(batch: readonly OpenConnection[]): Promise<void> {
    const { authorizer, connections, clock } = this.#options;
    const reports = batch.map((connection) => connection.report());
    const [answered, late] = [new AbortController(), new AbortController()];
    void clock.sleep(REPORT_TIMEOUT_MS, answered.signal).then(
      () => late.abort(new TemperError('TEMPER_TIMEOUT', 'the gateway did not answer a report in time')),
      () => undefined,
    );
    const deadline = clock.monotonic() + REPORT_TIMEOUT_MS;
    const ended = await authorizer
      .report(reports, { signal: late.signal, deadline, key: 'report' })
      .finally(() => answered.abort());
    for (const [index, connection] of batch.entries()) connections.reported(connection, reports[index]?.bytes ?? 0);
    for (const end of ended) endOne(batch, end);
  }
}

function endOne(batch: readonly OpenConnection[], { id, code, message }: EndedConnection): void {
  batch.find((connection) => connection.id === id)?.end(new TemperError(code, message));
}
