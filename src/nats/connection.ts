import { readFileSync } from 'node:fs';
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream';
import {
  type ConnectionOptions,
  connect,
  createInbox,
  type NatsConnection,
  nkeyAuthenticator,
  type Status,
} from '@nats-io/transport-node';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { busFailure } from './failures.ts';
import { atMost } from './limiter.ts';
import { assertServerVersion } from './server-version.ts';

export interface ConnectOptions {
  /** `tls://host:port`, one or several. */
  servers: string | string[];
  /** Shown in the server's monitoring. */
  name: string;
  /** The named user; its private inbox prefix is `_INBOX_<user>`. */
  user: string;
  /** File with the user's nkey seed. Read again at every connect, so that a new one is taken up. */
  seedFile: string;
  /** File with the authority of the server's certificate, read again at every connect. Without one nothing is encrypted: tests only. */
  caFile?: string;
  clock: Clock;
  /** Ends the wait for the first connection. */
  signal: AbortSignal;
  /** Told of every attempt that failed before the first connection. */
  onWaiting?: (error: TemperError) => void;
}

/** What conditions and health report. */
export interface BusState {
  connected: boolean;
  since: Date;
  /** Why it is not connected; printable. */
  reason?: string;
}

/** One connection of a process to the bus, kept for its whole life. Disposing drains it. */
export interface BusConnection extends AsyncDisposable {
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly clock: Clock;
  /** Aborted when the connection is closed for good. */
  readonly closed: AbortSignal;
  /** A new subject below the user's private prefix, for answers. */
  newInbox(): string;
  state(): BusState;
  /** Told of each change; the answer ends it. */
  onChange(listener: (state: BusState) => void): () => void;
  /** Resolves when connected; TEMPER_BUS_UNAVAILABLE when that takes longer than the milliseconds given, 5,000 by default. */
  ready(milliseconds?: number): Promise<void>;
  /**
   * Asks the server something, once connected. Throws TEMPER_BUS_UNAVAILABLE as soon as the connection is lost: an answer to what was
   * asked before cannot come any more, and the client alone would wait for it until its time is over.
   */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Runs work that brings much data at once; few such works run at a time, or the server would drop a client that cannot keep up. */
  bulk<T>(work: () => Promise<T>): Promise<T>;
}

const FIRST_ATTEMPTS = { shortest: 250, longest: 5_000 };
const RECONNECT = { shortest: 100, jitter: 900 };
const READY = 5_000;
const BULK_WORKS = 2;

/**
 * Connects and stays connected: attempts go on until `signal` ends them. Throws TEMPER_BUS_UNSUPPORTED for a server older than
 * the floor and TEMPER_CANCELLED when the signal was first.
 */
export async function connectBus(options: ConnectOptions): Promise<BusConnection> {
  const { clock, signal } = options;
  for (let wait = FIRST_ATTEMPTS.shortest; ; wait = Math.min(wait * 2, FIRST_ATTEMPTS.longest)) {
    if (signal.aborted) throw withdrawn();
    try {
      return await connectOnce(options);
    } catch (error) {
      if (isTemperError(error)) throw error;
      options.onWaiting?.(connectFailure(error));
    }
    try {
      await clock.sleep(wait / 2 + Math.random() * (wait / 2), signal);
    } catch {
      throw withdrawn();
    }
  }
}

function withdrawn(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'waiting for the bus was withdrawn');
}

/** Files that are not mounted yet and certificates that do not fit yet are waited for as well. */
function connectFailure(error: unknown): TemperError {
  const failure = busFailure(error, 'connecting to the bus');
  if (failure.code !== 'TEMPER_INTERNAL') return failure;
  return new TemperError('TEMPER_BUS_UNAVAILABLE', failure.message, { cause: error, retry: 'backoff' });
}

async function connectOnce(options: ConnectOptions): Promise<BusConnection> {
  const nats = await connect(clientOptions(options));
  try {
    assertServerVersion(nats.info?.version ?? '');
    const client = jetstream(nats);
    return new Connection(nats, client, await jetstreamManager(nats, { checkAPI: false }), options);
  } catch (error) {
    await nats.close();
    throw error;
  }
}

function clientOptions({ servers, name, user, seedFile, caFile }: ConnectOptions): ConnectionOptions {
  return {
    servers,
    name,
    inboxPrefix: inboxPrefix(user),
    authenticator: nkeyAuthenticator(() => seedFrom(seedFile)),
    ...(caFile === undefined ? {} : { tls: { caFile } }),
    // The defaults give up after ten attempts, and after two refusals: keys that are being replaced are refused for a while.
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    reconnectDelayHandler: () => RECONNECT.shortest + Math.random() * RECONNECT.jitter,
    timeout: 5_000,
    pingInterval: 10_000,
    maxPingOut: 2,
    ignoreClusterUpdates: true,
  };
}

function inboxPrefix(user: string): string {
  return `_INBOX_${user}`;
}

/** Synchronous because the client asks for it so; it is one small file. */
function seedFrom(file: string): Uint8Array {
  return Buffer.from(readFileSync(file, 'utf8').trim());
}

class Connection implements BusConnection {
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly clock: Clock;
  readonly bulk = atMost(BULK_WORKS);
  readonly newInbox: () => string;
  readonly #closed = new AbortController();
  readonly #listeners = new Set<(state: BusState) => void>();
  #state: BusState;
  #reason = '';

  constructor(
    nats: NatsConnection,
    client: JetStreamClient,
    manager: JetStreamManager,
    { clock, user }: ConnectOptions,
  ) {
    this.nats = nats;
    this.jetstream = client;
    this.manager = manager;
    this.clock = clock;
    this.newInbox = () => createInbox(inboxPrefix(user));
    this.#state = { connected: true, since: clock.now() };
    this.#watch().catch((error: unknown) => this.#end(error));
    nats.closed().then(
      (error) => this.#end(error ?? undefined),
      (error: unknown) => this.#end(error),
    );
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  state(): BusState {
    return { ...this.#state };
  }

  onChange(listener: (state: BusState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async ready(milliseconds = READY): Promise<void> {
    if (this.#state.connected) return;
    const over = new AbortController();
    const connected = new Promise<void>((resolve) => {
      const stop = this.onChange((state) => {
        if (state.connected) resolve();
      });
      over.signal.addEventListener('abort', stop, { once: true });
    });
    const late = this.clock.sleep(milliseconds, AbortSignal.any([over.signal, this.closed]));
    try {
      await Promise.race([connected, late.catch(() => undefined)]);
    } finally {
      over.abort();
    }
    if (!this.#state.connected) throw this.#away();
  }

  async ask<T>(work: () => Promise<T>): Promise<T> {
    await this.ready();
    return new Promise<T>((resolve, reject) => {
      const stop = this.onChange(({ connected }) => {
        if (!connected) reject(this.#away());
      });
      work().then(resolve, reject).finally(stop);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.nats.isClosed()) return;
    // Draining waits for a server that may not be there.
    if (this.#state.connected) await Promise.race([this.nats.drain(), this.nats.closed()]);
    await this.nats.close();
  }

  #away(): TemperError {
    const { since, reason = 'the connection was lost' } = this.#state;
    return new TemperError('TEMPER_BUS_UNAVAILABLE', `the bus is away since ${since.toISOString()}: ${reason}`, {
      retry: 'backoff',
    });
  }

  async #watch(): Promise<void> {
    for await (const status of this.nats.status()) await this.#take(status);
  }

  async #take(status: Status): Promise<void> {
    if (status.type === 'error') this.#reason = printable(messageOf(status.error, 200));
    if (status.type === 'disconnect') this.#change(false, this.#reason || 'the connection was lost');
    if (status.type !== 'reconnect') return;
    try {
      assertServerVersion(this.nats.info?.version ?? '');
    } catch (error) {
      this.#end(error);
      await this.nats.close();
      return;
    }
    this.#reason = '';
    this.#change(true);
  }

  #end(error?: unknown): void {
    if (this.#closed.signal.aborted) return;
    this.#change(false, error === undefined ? 'closed' : printable(messageOf(error, 200)));
    this.#closed.abort();
  }

  #change(connected: boolean, reason?: string): void {
    if (this.#closed.signal.aborted) return;
    const since = connected === this.#state.connected ? this.#state.since : this.clock.now();
    this.#state = { connected, since, ...(reason === undefined ? {} : { reason }) };
    for (const listener of this.#listeners) listener(this.state());
  }
}
