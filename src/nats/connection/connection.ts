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
import pLimit from 'p-limit';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { printable } from '../../lib/printable.ts';
import { isConflict, isConsumerMissing, isMessageMissing, isStreamMissing, natsError } from './errors.ts';
import { LocalListeners } from '../notify/local-listeners.ts';
import { assertServerVersion } from '../server/server-version.ts';

export interface ConnectOptions {
  /** `tls://host:port`, one or several. */
  servers: string | string[];
  /** Client name in the server's monitoring. */
  name: string;
  /** The named user; its private inbox prefix is `_INBOX_<user>`. */
  user: string;
  /** File with the user's nkey seed. Read at every connect and reconnect, so that a rotated seed is used without a restart. */
  seedFile: string;
  /** File with the CA of the server's certificate, read at every connect and reconnect. Without it the connection is not encrypted: tests only. */
  caFile?: string;
  clock: Clock;
  /** Cancels the wait for the first connection. */
  signal: AbortSignal;
  /** Called for each failed attempt before the first connection. */
  onRetry?: (error: TemperError) => void;
}

/** Connection state, as conditions and health endpoints report it. */
export interface ConnectionState {
  connected: boolean;
  since: Date;
  /** Why the client is not connected; printable. */
  reason?: string;
}

/** Kinds of requests to the server. */
type NatsOperation = 'publish' | 'get' | 'page' | 'count' | 'purge' | 'ack' | 'other';

/** Compare and swap that lost, and what does not exist, are answers and not errors. */
type RequestListener = (operation: NatsOperation, seconds: number, error: TemperError | undefined) => void;

/** A message that the server has stored and that it had not stored before. `bytes`: the size of its payload. */
type PublishListener = (subject: string, bytes: number, sequence: number) => void;

/** The one NATS connection of a process, open until the process ends. Disposing drains it. */
export interface JetStreamConnection extends AsyncDisposable {
  /** Names the connection in its notifications. */
  readonly id: string;
  readonly listeners: LocalListeners;
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly clock: Clock;
  /** Aborted when the connection is closed and will not reconnect. */
  readonly closed: AbortSignal;
  /** A new reply subject below the user's private inbox prefix. */
  newInbox(): string;
  state(): ConnectionState;
  /** Calls `listener` at each change. Returns the function that removes the listener. */
  onChange(listener: (state: ConnectionState) => void): () => void;
  /** Resolves when connected. Throws TEMPER_BUS_UNAVAILABLE after `timeoutMs`, 5,000 by default. */
  ready(timeoutMs?: number): Promise<void>;
  /**
   * Runs one request to the server, once connected. Throws TEMPER_BUS_UNAVAILABLE as soon as the connection is lost: the response to a
   * request sent before cannot arrive any more, and the NATS client alone would wait for it until the request times out.
   * `operation` names the request in metrics.
   */
  request<T>(work: () => Promise<T>, operation?: NatsOperation): Promise<T>;
  /** Calls `listener` after each request, with its duration, and with its error if it failed. */
  onRequest(listener: RequestListener): void;
  /** Calls `listener` after each message that `publish` has stored. */
  onPublished(listener: PublishListener): void;
  /** Calls the listeners of `onPublished`. */
  published: PublishListener;
  /** Runs a read that returns much data. At most two run at a time: the server disconnects a client that cannot keep up (slow consumer). */
  limitBulk<T>(work: () => Promise<T>): Promise<T>;
}

const CONNECT_RETRY = { minMs: 250, maxMs: 5_000 };
const RECONNECT = { minMs: 100, jitterMs: 900 };
const READY_TIMEOUT_MS = 5_000;
const MAX_BULK_READS = 2;
/** Reads of one message. Together they have at most 11 MiB, below the server's `max_pending`, beyond which it ends the connection. */
const MAX_GETS = 32;

/**
 * Connects to NATS and reconnects for as long as the process runs. Retries the first connection until `signal` is aborted. Throws
 * TEMPER_BUS_UNSUPPORTED for a server below the minimum version, and TEMPER_CANCELLED when `signal` is aborted before the first connection.
 */
export async function connectNats(options: ConnectOptions): Promise<JetStreamConnection> {
  const { clock, signal } = options;
  for (let waitMs = CONNECT_RETRY.minMs; ; waitMs = Math.min(waitMs * 2, CONNECT_RETRY.maxMs)) {
    if (signal.aborted) throw cancelled();
    try {
      return await connectOnce(options);
    } catch (error) {
      if (isTemperError(error)) throw error;
      options.onRetry?.(connectError(error));
    }
    try {
      await clock.sleep(waitMs / 2 + Math.random() * (waitMs / 2), signal);
    } catch {
      throw cancelled();
    }
  }
}

function cancelled(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'waiting for NATS was cancelled');
}

/** Makes every failure of the first connection retryable: the key files may not be mounted yet, or the certificates not match yet. */
function connectError(error: unknown): TemperError {
  const failure = natsError(error, 'connecting to NATS');
  if (failure.code !== 'TEMPER_INTERNAL') return failure;
  return new TemperError('TEMPER_BUS_UNAVAILABLE', failure.message, { cause: error, retry: 'backoff' });
}

async function connectOnce(options: ConnectOptions): Promise<JetStreamConnection> {
  const nats = await connect(clientOptions(options));
  try {
    assertServerVersion(nats.info?.version ?? '');
    const client = jetstream(nats);
    return new ManagedConnection(nats, client, await jetstreamManager(nats, { checkAPI: false }), options);
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
    authenticator: nkeyAuthenticator(() => readSeed(seedFile)),
    ...(caFile === undefined ? {} : { tls: { caFile } }),
    // The client's defaults stop after ten attempts, and after two authentication errors: during a key rotation the server
    // rejects the client for a while.
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    reconnectDelayHandler: () => RECONNECT.minMs + Math.random() * RECONNECT.jitterMs,
    timeout: 5_000,
    pingInterval: 10_000,
    maxPingOut: 2,
    ignoreClusterUpdates: true,
    // Captures no stack before each request. Errors name the operation.
    noAsyncTraces: true,
  };
}

function inboxPrefix(user: string): string {
  return `_INBOX_${user}`;
}

/** Synchronous because the NATS client requires it; it is one small file. */
function readSeed(file: string): Uint8Array {
  return Buffer.from(readFileSync(file, 'utf8').trim());
}

/** A server that answers drains a connection in milliseconds. */
const DRAIN_TIMEOUT_MS = 5_000;

class ManagedConnection implements JetStreamConnection {
  readonly id = ulids.next('c');
  readonly listeners = new LocalListeners();
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly clock: Clock;
  readonly limitBulk = pLimit(MAX_BULK_READS);
  readonly #limitGets = pLimit(MAX_GETS);
  readonly newInbox: () => string;
  readonly #closed = new AbortController();
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  readonly #requestListeners = new Set<RequestListener>();
  readonly #publishListeners = new Set<PublishListener>();
  #state: ConnectionState;
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
    this.#followStatus().catch((error: unknown) => this.#markClosed(error));
    nats.closed().then(
      (error) => this.#markClosed(error ?? undefined),
      (error: unknown) => this.#markClosed(error),
    );
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  state(): ConnectionState {
    return { ...this.#state };
  }

  onChange(listener: (state: ConnectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async ready(timeoutMs = READY_TIMEOUT_MS): Promise<void> {
    if (this.#state.connected) return;
    const done = new AbortController();
    const { promise: connected, resolve } = Promise.withResolvers<void>();
    const stop = this.onChange((state) => {
      if (state.connected) resolve();
    });
    const timeout = this.clock.sleep(timeoutMs, AbortSignal.any([done.signal, this.closed]));
    try {
      await Promise.race([connected, timeout.catch(() => undefined)]);
    } finally {
      stop();
      done.abort();
    }
    if (!this.#state.connected) throw this.#unavailable();
  }

  async request<T>(work: () => Promise<T>, operation: NatsOperation = 'other'): Promise<T> {
    const startedAt = this.clock.monotonic();
    let failure: unknown;
    try {
      return await (operation === 'get' ? this.#limitGets(() => this.#send(work)) : this.#send(work));
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const seconds = (this.clock.monotonic() - startedAt) / 1_000;
      const error = failure === undefined || isAnswer(failure) ? undefined : natsError(failure, operation);
      for (const listener of this.#requestListeners) listener(operation, seconds, error);
    }
  }

  onRequest(listener: RequestListener): void {
    this.#requestListeners.add(listener);
  }

  onPublished(listener: PublishListener): void {
    this.#publishListeners.add(listener);
  }

  published(subject: string, bytes: number, sequence: number): void {
    for (const listener of this.#publishListeners) listener(subject, bytes, sequence);
  }

  async #send<T>(work: () => Promise<T>): Promise<T> {
    await this.ready();
    return new Promise<T>((resolve, reject) => {
      const stop = this.onChange(({ connected }) => {
        if (!connected) reject(this.#unavailable());
      });
      work().then(resolve, reject).finally(stop);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.nats.isClosed()) return;
    // Draining would wait for a server that is unavailable, and for one that is gone without a word: until then it counts as connected.
    if (this.#state.connected) await this.#drain();
    await this.nats.close();
  }

  async #drain(): Promise<void> {
    const ended = new AbortController();
    const timeout = this.clock.sleep(DRAIN_TIMEOUT_MS, ended.signal).catch(() => undefined);
    const drained = this.nats.drain();
    drained.catch(() => undefined);
    try {
      await Promise.race([drained, this.nats.closed(), timeout]);
    } finally {
      ended.abort();
    }
  }

  #unavailable(): TemperError {
    const { since, reason = 'the connection was lost' } = this.#state;
    return new TemperError('TEMPER_BUS_UNAVAILABLE', `NATS is unavailable since ${since.toISOString()}: ${reason}`, {
      retry: 'backoff',
    });
  }

  async #followStatus(): Promise<void> {
    for await (const status of this.nats.status()) await this.#onStatus(status);
  }

  async #onStatus(status: Status): Promise<void> {
    if (status.type === 'error') this.#reason = printable(messageOf(status.error, 200));
    if (status.type === 'disconnect') this.#setState(false, this.#reason || 'the connection was lost');
    if (status.type !== 'reconnect') return;
    try {
      assertServerVersion(this.nats.info?.version ?? '');
    } catch (error) {
      this.#markClosed(error);
      await this.nats.close();
      return;
    }
    this.#reason = '';
    this.#setState(true);
  }

  #markClosed(error?: unknown): void {
    if (this.#closed.signal.aborted) return;
    this.#setState(false, error === undefined ? 'closed' : printable(messageOf(error, 200)));
    this.#closed.abort();
  }

  #setState(connected: boolean, reason?: string): void {
    if (this.#closed.signal.aborted) return;
    const since = connected === this.#state.connected ? this.#state.since : this.clock.now();
    this.#state = { connected, since, ...(reason === undefined ? {} : { reason }) };
    for (const listener of this.#listeners) listener(this.state());
  }
}

function isAnswer(error: unknown): boolean {
  return [isConflict, isConsumerMissing, isMessageMissing, isStreamMissing].some((is) => is(error));
}
