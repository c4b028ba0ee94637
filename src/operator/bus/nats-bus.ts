import { TemperError, messageOf } from '../../lib/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { type BusConnection, connectBus } from '../../nats/connection.ts';
import { createInbox } from '../../nats/inbox.ts';
import { agentsWithLeftovers, sweepAgent } from '../../nats/sweep.ts';
import { reconcileTopology } from '../../nats/topology.ts';
import { createWakes } from '../../nats/wakes.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorConfig } from '../config.ts';
import type { Bus } from '../ports.ts';

type NatsOptions = NonNullable<OperatorConfig['nats']>;

const RETRY = 2_000;
/** Everything an agent does leaves an event there, for a day. */
const EVENTS = 'temper-events';

/**
 * The bus over NATS. The operator makes the keys and certificates the server starts with, so it must run before there is a bus: the
 * connection is made in the background and everything says until then that the bus is away.
 */
export class NatsBus implements Bus, AsyncDisposable {
  readonly #options: NatsOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  readonly #since: Date;
  readonly #connecting: Promise<void>;
  #connection: BusConnection | undefined;

  constructor(options: NatsOptions, { clock, log }: { clock: Clock; log: Logger }) {
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#since = clock.now();
    this.#connecting = this.#connect();
  }

  async pending(agentUid: string): Promise<number> {
    const { waiting, inFlight } = await createInbox(this.#connected()).waiting(agentUid);
    return waiting + inFlight;
  }

  async lastActivity(agentUid: string): Promise<Date> {
    const { streams } = this.#connected().manager;
    const last = await streams.getMessage(EVENTS, { last_by_subj: `temper.events.${agentUid}.>` });
    return last?.time ?? new Date(0);
  }

  async *wakes(signal: AbortSignal): AsyncIterable<string> {
    const connection = this.#connected();
    const arrived: string[] = [];
    let notify = Promise.withResolvers<void>();
    const wake = async (agentUid: string): Promise<void> => {
      arrived.push(agentUid);
      notify.resolve();
    };
    const over = createWakes(connection)
      .consume(wake, signal)
      .finally(() => notify.resolve());
    let ended = false;
    void over.then(
      () => (ended = true),
      () => (ended = true),
    );
    while (!signal.aborted) {
      for (const uid of arrived.splice(0)) yield uid;
      if (ended) break;
      await notify.promise;
      notify = Promise.withResolvers<void>();
    }
    await over;
  }

  residents(): Promise<readonly string[]> {
    return agentsWithLeftovers(this.#connected());
  }

  sweep(agentUid: string): Promise<void> {
    return sweepAgent(this.#connected(), agentUid);
  }

  unavailableSince(): Date | undefined {
    const state = this.#connection?.state();
    if (state === undefined) return this.#since;
    return state.connected ? undefined : state.since;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#connecting;
    await this.#connection?.[Symbol.asyncDispose]();
  }

  #connected(): BusConnection {
    if (this.#connection !== undefined) return this.#connection;
    throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the bus is not connected yet', { retry: 'backoff' });
  }

  async #connect(): Promise<void> {
    const { signal } = this.#stopping;
    const { url, seedFile, caFile, replicas } = this.#options;
    while (!signal.aborted) {
      try {
        const connection = await connectBus({
          servers: url,
          name: 'temper-operator',
          user: 'operator',
          seedFile,
          ...(caFile === undefined ? {} : { caFile }),
          clock: this.#clock,
          signal,
        });
        this.#connection = connection;
        const report = await reconcileTopology(connection, replicas === undefined ? {} : { replicas });
        this.#log.info({ ...report }, 'the bus is connected and has its streams');
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn({ error: messageOf(error) }, 'the bus cannot be used yet');
        await this.#connection?.[Symbol.asyncDispose]();
        this.#connection = undefined;
        await this.#clock.sleep(RETRY, signal).catch(() => {});
      }
    }
  }
}
