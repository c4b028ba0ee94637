import { Notifier } from '../../lib/async/notifier.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { type JetStreamConnection, type ConnectionState, connectNats } from '../../nats/connection/connection.ts';
import { reportRequests } from '../../nats/connection/request-metrics.ts';
import { STREAMS } from '../../nats/jetstream/names.ts';
import { DEFAULT_STORE_BYTES, reconcileTopology, type StreamUsage } from '../../nats/jetstream/topology.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorConfig } from '../config.ts';
import type { AccountOwner } from './account-owner.ts';
import { AuditAlarm } from './audit-alarm.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';

export type NatsOptions = NonNullable<OperatorConfig['nats']>;

export interface NatsLinkDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<OperatorMetrics, 'count' | 'gauge' | 'observe' | 'watch'>;
  /** Absent: the account is not checked. */
  readonly owner?: Pick<AccountOwner, 'conflict' | 'claim'> | undefined;
}

const RETRY_MS = 2_000;
const FOREIGN_INTERVAL_MS = 10_000;
/** Interval of the check that restores deleted streams. */
const TOPOLOGY_INTERVAL_MS = 60_000;

/**
 * The operator's NATS connection. Creates and updates the declared streams and buckets. The NATS server starts with keys and certificates
 * that the operator creates, so the operator runs before the server exists: it connects in the background, with retries.
 */
export class NatsLink implements AsyncDisposable {
  readonly #options: NatsOptions;
  readonly #deps: NatsLinkDeps;
  readonly #stopping = new AbortController();
  readonly #changes = new Notifier();
  readonly #running: Promise<void>;
  #connection: JetStreamConnection | undefined;
  /** Since when no connection exists. */
  #since: Date;
  #lastWarning = '';
  readonly #auditAlarm: AuditAlarm;
  #isRefused = false;

  constructor(options: NatsOptions, deps: NatsLinkDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#since = deps.clock.now();
    this.#auditAlarm = new AuditAlarm(deps.log, deps.metrics);
    deps.metrics.watch('temper_nats_connected', {}, () => (this.unavailableSince() === undefined ? 1 : 0));
    deps.metrics.gauge('temper_nats_topology_ready', {}, 0);
    this.#running = this.#run();
  }

  /** The current connection, without waiting. Throws TEMPER_BUS_UNAVAILABLE while NATS is unreachable. */
  current(): JetStreamConnection {
    const connection = this.#connection;
    if (connection !== undefined && connection.state().connected) return connection;
    const since = this.unavailableSince()?.toISOString() ?? '';
    throw new TemperError('TEMPER_BUS_UNAVAILABLE', `NATS is unreachable since ${since}`, { retry: 'backoff' });
  }

  /**
   * Waits for a connection. Undefined when the signal aborts first. Never a closed one, which this class may still hold for a moment: a
   * loop that follows connections would get it again and again without a pause.
   */
  async waitForConnection(signal: AbortSignal): Promise<JetStreamConnection | undefined> {
    for (;;) {
      const connection = this.#connection;
      if (connection !== undefined && !connection.closed.aborted) return connection;
      if (signal.aborted) return undefined;
      await this.nextChange(signal);
    }
  }

  /** Since when NATS is unreachable; undefined while it is reachable. */
  unavailableSince(): Date | undefined {
    const state = this.#connection?.state();
    if (state === undefined) return this.#since;
    return state.connected ? undefined : state.since;
  }

  /** Resolves at the next change of the connection state, or when the signal aborts. */
  nextChange(signal: AbortSignal): Promise<void> {
    return this.#changes.wait(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await using connection = await this.#connect(signal);
        await this.#serve(connection, signal);
      } catch (error) {
        if (!signal.aborted) this.#warn(error);
      }
      await this.#pause(RETRY_MS, signal);
    }
  }

  #connect(signal: AbortSignal): Promise<JetStreamConnection> {
    const { url, seedFile, caFile } = this.#options;
    return connectNats({
      servers: url,
      name: 'temper-operator',
      user: 'operator',
      seedFile,
      ...(caFile === undefined ? {} : { caFile }),
      clock: this.#deps.clock,
      signal,
      onRetry: (error) => this.#warn(error),
    });
  }

  /** Serves a connection until it is closed permanently. */
  async #serve(connection: JetStreamConnection, signal: AbortSignal): Promise<void> {
    const ended = AbortSignal.any([signal, connection.closed]);
    const stop = connection.onChange((state) => this.#onState(state));
    reportRequests(connection, this.#deps.metrics);
    try {
      while (!ended.aborted) {
        if (await this.#isForeign(connection, ended)) {
          this.#withdraw();
          await this.#pause(FOREIGN_INTERVAL_MS, ended);
          continue;
        }
        if (this.#connection === undefined) {
          this.#connection = connection;
          this.#onState(connection.state());
        }
        const pause = await this.#topology(connection, ended);
        await this.#pause(pause, ended);
      }
    } finally {
      stop();
      this.#withdraw();
    }
  }

  #withdraw(): void {
    if (this.#connection === undefined) return;
    this.#connection = undefined;
    this.#since = this.#deps.clock.now();
    this.#notify();
  }

  /** Another installation uses the account: this operator neither changes its streams nor consumes from them. */
  async #isForeign(connection: JetStreamConnection, signal: AbortSignal): Promise<boolean> {
    const { owner, metrics, log } = this.#deps;
    let problem: string | undefined;
    try {
      problem = await owner?.conflict(connection, signal);
    } catch {
      // A check that fails decides nothing: NATS or the API server is unreachable.
      return this.#isRefused;
    }
    this.#isRefused = problem !== undefined;
    metrics.gauge('temper_nats_account_conflict', {}, this.#isRefused ? 1 : 0);
    if (problem === undefined) return false;
    if (problem !== this.#lastWarning)
      log.error({ problem }, 'NATS is refused: the account belongs to another installation');
    this.#lastWarning = problem;
    return true;
  }

  /** Returns the milliseconds until the next check. */
  async #topology(connection: JetStreamConnection, signal: AbortSignal): Promise<number> {
    // A reconnect ends the pause early and checks at once, because the store may have been lost meanwhile.
    if (!connection.state().connected) return TOPOLOGY_INTERVAL_MS;
    const { replicas, server } = this.#options;
    const storeBytes = server?.storeBytes ?? DEFAULT_STORE_BYTES;
    const { log, metrics } = this.#deps;
    try {
      const report = await reconcileTopology(connection, {
        storeBytes,
        onUsage: (usage) => this.#reportUsage(usage),
        ...(replicas === undefined ? {} : { replicas }),
      });
      await this.#deps.owner?.claim(connection, signal);
      await this.#auditAlarm.checkNamespaces(connection);
      const { created, updated, drift } = report;
      metrics.gauge('temper_nats_topology_ready', {}, drift.length === 0 ? 1 : 0);
      if (created.length + updated.length > 0) log.info({ created, updated }, 'created or updated NATS streams');
      if (drift.length > 0) this.#warnOnce(drift.join('; '), 'NATS differs from what Temper needs');
      return TOPOLOGY_INTERVAL_MS;
    } catch (error) {
      metrics.gauge('temper_nats_topology_ready', {}, 0);
      this.#warn(error);
      return RETRY_MS;
    }
  }

  #reportUsage(usage: StreamUsage): void {
    const { metrics, clock } = this.#deps;
    const { stream, messages, bytes, maxBytes, firstTime, copies } = usage;
    metrics.gauge('temper_nats_stream_bytes', { stream }, bytes);
    metrics.gauge('temper_nats_stream_max_bytes', { stream }, maxBytes);
    metrics.gauge('temper_nats_stream_messages', { stream }, messages);
    metrics.gauge('temper_nats_stream_replicas', { stream, state: 'declared' }, copies.declared);
    metrics.gauge('temper_nats_stream_replicas', { stream, state: 'current' }, copies.current);
    metrics.gauge('temper_nats_stream_lag', { stream }, copies.lag);
    if (stream === STREAMS.inbox) {
      const age = messages === 0 ? 0 : (clock.now().getTime() - firstTime.getTime()) / 1_000;
      metrics.gauge('temper_inbox_oldest_seconds', {}, Math.max(0, age));
    }
    if (stream === STREAMS.activity || stream === STREAMS.reports)
      metrics.gauge('temper_nats_stream_removed_messages', { stream }, usage.removed);
    if (stream === STREAMS.audit) this.#auditAlarm.checkStream(usage);
  }

  #onState({ connected, reason }: ConnectionState): void {
    const { log, metrics } = this.#deps;
    metrics.count('temper_nats_connection_changes_total', { to: connected ? 'connected' : 'lost' });
    if (connected) {
      this.#lastWarning = '';
      log.info({}, 'NATS connected');
    } else if (!this.#stopping.signal.aborted) log.warn({ reason }, 'NATS connection lost; reconnecting');
    this.#notify();
  }

  #notify(): void {
    this.#changes.notifyAll();
  }

  /** Ends early at each change of the connection state. */
  async #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    const changedState = new AbortController();
    const ended = AbortSignal.any([signal, changedState.signal]);
    const changed = this.nextChange(ended).then(() => changedState.abort());
    await this.#deps.clock.sleep(milliseconds, ended).catch(() => undefined);
    changedState.abort();
    await changed;
  }

  #warn(error: unknown): void {
    this.#warnOnce(messageOf(error, 400), 'NATS is not usable yet; retrying');
  }

  /** Attempts repeat about every second, so a message is logged only when it differs from the previous one. */
  #warnOnce(problem: string, message: string): void {
    if (problem === this.#lastWarning) return;
    this.#lastWarning = problem;
    this.#deps.log.warn({ problem }, message);
  }
}
