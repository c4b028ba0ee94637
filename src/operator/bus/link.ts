import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { type BusConnection, type BusState, connectBus } from '../../nats/connection.ts';
import { DEFAULT_STORE_BYTES, reconcileTopology } from '../../nats/topology.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorConfig } from '../config.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';

export type NatsOptions = NonNullable<OperatorConfig['nats']>;

export interface LinkDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<OperatorMetrics, 'count' | 'gauge' | 'watch'>;
}

const RETRY = 2_000;
/** Streams that somebody removed are missed by then. */
const TOPOLOGY_EVERY = 60_000;

/**
 * The operator's connection to the bus, with its streams and buckets as declared. The operator makes the keys and certificates the server
 * starts with, so it runs before there is a bus: everything happens in the background, again and again, and nobody waits for it.
 */
export class BusLink implements AsyncDisposable {
  readonly #options: NatsOptions;
  readonly #deps: LinkDeps;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #running: Promise<void>;
  #connection: BusConnection | undefined;
  /** Since when there is no connection at all. */
  #since: Date;
  #told = '';

  constructor(options: NatsOptions, deps: LinkDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#since = deps.clock.now();
    deps.metrics.watch('temper_bus_connected', {}, () => (this.unavailableSince() === undefined ? 1 : 0));
    deps.metrics.gauge('temper_bus_topology_ready', {}, 0);
    this.#running = this.#keep();
  }

  /** Throws TEMPER_BUS_UNAVAILABLE while it is away: nobody here can wait. */
  now(): BusConnection {
    const connection = this.#connection;
    if (connection !== undefined && connection.state().connected) return connection;
    const since = this.unavailableSince()?.toISOString() ?? '';
    throw new TemperError('TEMPER_BUS_UNAVAILABLE', `the bus is away since ${since}`, { retry: 'backoff' });
  }

  /** Undefined when the signal was first. */
  async connected(signal: AbortSignal): Promise<BusConnection | undefined> {
    while (this.#connection === undefined) {
      if (signal.aborted) return undefined;
      await this.changed(signal);
    }
    return this.#connection;
  }

  /** Since when it cannot be reached; undefined while it can. */
  unavailableSince(): Date | undefined {
    const state = this.#connection?.state();
    if (state === undefined) return this.#since;
    return state.connected ? undefined : state.since;
  }

  /** Resolves with the next change of the connection, or with the signal. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#listeners.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      if (signal.aborted) return resolve();
      this.#listeners.add(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await using connection = await this.#connect(signal);
        await this.#hold(connection, signal);
      } catch (error) {
        if (!signal.aborted) this.#warn(error);
      }
      await this.#pause(RETRY, signal);
    }
  }

  #connect(signal: AbortSignal): Promise<BusConnection> {
    const { url, seedFile, caFile } = this.#options;
    return connectBus({
      servers: url,
      name: 'temper-operator',
      user: 'operator',
      seedFile,
      ...(caFile === undefined ? {} : { caFile }),
      clock: this.#deps.clock,
      signal,
      onWaiting: (error) => this.#warn(error),
    });
  }

  /** Until the connection is closed for good. */
  async #hold(connection: BusConnection, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, connection.closed]);
    const stop = connection.onChange((state) => this.#took(state));
    this.#connection = connection;
    this.#took(connection.state());
    try {
      while (!over.aborted) {
        const pause = await this.#topology(connection);
        await this.#pause(pause, over);
      }
    } finally {
      stop();
      this.#connection = undefined;
      this.#since = this.#deps.clock.now();
      this.#tell();
    }
  }

  /** Milliseconds until the next look. */
  async #topology(connection: BusConnection): Promise<number> {
    // Whoever is told to connect again looks at once: the store may have been lost meanwhile.
    if (!connection.state().connected) return TOPOLOGY_EVERY;
    const { replicas, server } = this.#options;
    const storeBytes = server?.storeBytes ?? DEFAULT_STORE_BYTES;
    const { log, metrics } = this.#deps;
    try {
      const report = await reconcileTopology(connection, {
        storeBytes,
        ...(replicas === undefined ? {} : { replicas }),
      });
      metrics.gauge('temper_bus_topology_ready', {}, 1);
      const { created, updated, drift } = report;
      if (created.length + updated.length > 0)
        log.info({ created, updated }, 'streams of the bus were made or changed');
      if (drift.length > 0) this.#warnOnce(drift.join('; '), 'streams of the bus differ from what is declared');
      return TOPOLOGY_EVERY;
    } catch (error) {
      metrics.gauge('temper_bus_topology_ready', {}, 0);
      this.#warn(error);
      return RETRY;
    }
  }

  #took({ connected, reason }: BusState): void {
    const { log, metrics } = this.#deps;
    metrics.count('temper_bus_connection_changes_total', { to: connected ? 'connected' : 'lost' });
    if (connected) {
      this.#told = '';
      log.info({}, 'the bus is connected');
    } else if (!this.#stopping.signal.aborted)
      log.warn({ reason }, 'the bus was lost; it is connected again as soon as it answers');
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Ends early with each change of the connection. */
  async #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const over = AbortSignal.any([signal, woken.signal]);
    const changed = this.changed(over).then(() => woken.abort());
    await this.#deps.clock.sleep(milliseconds, over).catch(() => undefined);
    woken.abort();
    await changed;
  }

  #warn(error: unknown): void {
    this.#warnOnce(messageOf(error, 400), 'the bus cannot be used yet; it is tried again');
  }

  /** Attempts go on every second or so: each is told when it says something else than the one before. */
  #warnOnce(problem: string, message: string): void {
    if (problem === this.#told) return;
    this.#told = problem;
    this.#deps.log.warn({ problem }, message);
  }
}
