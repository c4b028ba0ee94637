import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import { Backoff } from './backoff.ts';
import { ApiError, type ResourceType } from '../client/kube-client.ts';
import { listAll, PageSize, type ObjectSelection } from '../client/list.ts';
import { Latch } from '../../lib/async/latch.ts';
import type { Metrics } from '../metrics.ts';
import { type Change, type KubeObject, keyOf, type Store } from './store.ts';
import type { Transport } from '../client/transport.ts';
import { StalledWatch, type WatchEvent, watchStream } from './watch-stream.ts';

/** The source of a change: the initial list, a watch event (or relist), or a periodic resync. */
export type ChangeSource = 'initial' | 'change' | 'resync';

/** Called synchronously for every change. Must not block and must not throw: a listener only adds keys to queues. */
export type ChangeListener<T extends KubeObject> = (change: Change<T>, origin: ChangeSource) => void;

export interface ReflectorOptions<T extends KubeObject> {
  type: ResourceType;
  transport: Transport;
  store: Store<T>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Default: all namespaces. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Fetch only `metadata`. */
  metadataOnly?: boolean;
  /** Prunes an object before it is stored. Must keep `metadata.name`, `namespace`, `uid` and `resourceVersion`. */
  transform?: (object: T) => T;
  /** The resync interval in milliseconds, plus up to 10 % jitter; default ten hours. */
  resyncMs?: number;
}

const DEFAULT_RESYNC_MS = 10 * 3_600_000;
const BACKOFF = { baseMs: 800, maxMs: 30_000, resetAfterMs: 120_000 } as const;
/**
 * A normal watch lasts minutes. A watch, or a resourceVersion, that lasted less than this counts as a failure and is retried with backoff;
 * otherwise the reflector would retry in a tight loop.
 */
const MIN_WATCH_MS = 1_000;
/**
 * How long a list that is older than what the store has is refused. A cache that lags serves it for a moment; after a restore of etcd from a
 * backup every list is older.
 */
const MAX_STALE_MS = 30_000;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;
/** The status for a resourceVersion that is newer than the data of the API server; after a restore from a backup it stays too new. */
const RESOURCE_VERSION_TOO_LARGE = 504;

const COUNTERS = [
  'reflector_lists_total',
  'reflector_watches_total',
  'reflector_short_watches_total',
  'reflector_stalls_total',
  'reflector_stale_lists_total',
] as const;

/** Keeps a store in sync with the API server: lists, then watches; watches again when the watch ends, and relists when its version expired. */
export class Reflector<T extends KubeObject> implements AsyncDisposable {
  readonly store: Store<T>;
  readonly #options: ReflectorOptions<T>;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #backoff: Backoff;
  readonly #listeners: ChangeListener<T>[] = [];
  readonly #synced = new Latch();
  readonly #pageSize = new PageSize();
  #running: Promise<unknown> | undefined;
  /** The resourceVersion of the store; undefined when a list is needed. */
  #version: string | undefined;
  /** The newest resourceVersion that the store has had. */
  #newest = '';
  /** When the first of several lists was older than the store. */
  #staleSince: number | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.store = options.store;
    const { plural, group } = options.type;
    this.#name = group === '' ? plural : `${plural}.${group}`;
    this.#backoff = new Backoff({ ...BACKOFF, clock: options.clock, random: options.random });
    for (const name of COUNTERS) this.#count(name, 0);
    this.#reportEvent(0);
  }

  /** True when the initial list is in the store. */
  get hasSynced(): boolean {
    return this.#synced.isOpen;
  }

  /** Resolves when the initial list is in the store; rejects with the reason of the signal when it aborts. */
  synced(signal: AbortSignal): Promise<void> {
    return this.#synced.opened(signal);
  }

  /** Adds a listener. It first receives every object already in the store, as part of the initial list. */
  subscribe(listener: ChangeListener<T>): void {
    this.#listeners.push(listener);
    for (const object of this.store.list()) {
      this.#notify(listener, { type: 'added', key: keyOf(object), object }, 'initial');
    }
  }

  /** A second call does nothing. */
  start(): void {
    this.#running ??= Promise.all([this.#listAndWatch(), this.#resync()]);
  }

  /** Aborts the list or watch; resolves when both loops have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #listAndWatch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list(signal);
        else await this.#watch(this.#version, signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#recover(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { transport, type, metadataOnly } = this.#options;
    this.#count('reflector_lists_total');
    const options = { metadataOnly, pageSize: this.#pageSize };
    const { items, resourceVersion } = await listAll<T>(transport, type, this.#selection(), signal, options);
    this.#assertNotStale(resourceVersion);
    const changes = this.store.replace(items.map((item) => this.#transform(item)));
    this.#version = this.#newest = resourceVersion;
    this.#listedAt = this.#options.clock.monotonic();
    this.#reportEvent();
    const origin = this.#synced.isOpen ? 'change' : 'initial';
    // `hasSynced` is true while the listeners run; promises resolve only afterwards.
    this.#synced.open();
    this.#notifyAll(changes, origin);
  }

  /** A store that goes back in time makes its readers repeat what they did, for example create a second pod. */
  #assertNotStale(resourceVersion: string): void {
    const now = this.#options.clock.monotonic();
    if (!isOlder(resourceVersion, this.#newest) || now - (this.#staleSince ?? now) >= MAX_STALE_MS) {
      this.#staleSince = undefined;
      return;
    }
    this.#staleSince ??= now;
    this.#count('reflector_stale_lists_total');
    throw new Error(
      `the list has resourceVersion ${resourceVersion}, older than ${this.#newest}, which was read before`,
    );
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { transport, clock, type, metadataOnly = false, random } = this.#options;
    const timeoutSeconds = 300 + Math.floor(random() * 300);
    const selection = this.#selection();
    const watch = { transport, clock, type, selection, metadataOnly, resourceVersion, timeoutSeconds };
    const started = clock.monotonic();
    this.#count('reflector_watches_total');
    for await (const batch of watchStream<T>(watch, signal)) {
      for (const event of batch) this.#applyEvent(event);
      if (batch.length > 0) this.#reportEvent();
    }
    if (clock.monotonic() - started < MIN_WATCH_MS) {
      this.#count('reflector_short_watches_total');
      throw new Error(`the watch ended within ${MIN_WATCH_MS} ms`);
    }
  }

  #applyEvent(event: WatchEvent<T>): void {
    if (event.type === 'set') this.#notifyAll(this.store.set(this.#transform(event.object)), 'change');
    else if (event.type === 'deleted') {
      const object = this.#transform(event.object);
      this.#notifyAll(this.store.delete(keyOf(object), object), 'change');
    }
    this.#version = this.#newest = event.version;
  }

  /** Waits with backoff before the next attempt. Relists without a delay when the watch's resourceVersion expired, since nothing failed. */
  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    if (error instanceof StalledWatch) this.#count('reflector_stalls_total');
    const wasListing = this.#version === undefined;
    // Without the minimum age, a server that expires versions immediately would be listed in a tight loop.
    const versionExpired = isExpired(error) && !wasListing && clock.monotonic() - this.#listedAt >= MIN_WATCH_MS;
    if (needsList(error)) this.#version = undefined;
    if (versionExpired) {
      log.info({ resource: this.#name }, 'watch expired; relisting');
      return;
    }
    const delay = this.#backoff.next();
    const fields = { resource: this.#name, wait: Math.round(delay), relist: this.#version === undefined, error };
    log.warn(fields, wasListing ? 'list failed; retrying' : 'watch failed; retrying');
    try {
      await clock.sleep(delay, signal);
    } catch (reason) {
      if (!signal.aborted) throw reason;
    }
  }

  /** Periodic resync: notifies the listeners of every object in the store, so that changes outside the watch are reconciled too. */
  async #resync(): Promise<void> {
    const { clock, random, resyncMs = DEFAULT_RESYNC_MS } = this.#options;
    const { signal } = this.#stopping;
    for (;;) {
      try {
        await clock.sleep(resyncMs * (1 + random() / 10), signal);
      } catch (reason) {
        if (signal.aborted) return;
        throw reason;
      }
      const changes = this.store.list().map((object) => {
        return { type: 'updated', key: keyOf(object), object, before: object } as const;
      });
      this.#notifyAll(changes, 'resync');
    }
  }

  #transform(object: T): T {
    return this.#options.transform?.(object) ?? object;
  }

  #notifyAll(changes: readonly Change<T>[], origin: ChangeSource): void {
    for (const change of changes) {
      for (const listener of this.#listeners) this.#notify(listener, change, origin);
    }
  }

  #notify(listener: ChangeListener<T>, change: Change<T>, origin: ChangeSource): void {
    try {
      listener(change, origin);
    } catch (error) {
      // A defective listener must not prevent the notification of the others.
      this.#options.log.error({ resource: this.#name, key: change.key, error }, 'a change listener threw an error');
    }
  }

  #selection(): ObjectSelection {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }

  #count(name: (typeof COUNTERS)[number], by = 1): void {
    this.#options.metrics.count(name, { name: this.#name }, by);
  }

  #reportEvent(milliseconds = this.#options.clock.now().getTime()): void {
    const seconds = milliseconds / 1_000;
    this.#options.metrics.gauge('reflector_last_event_timestamp_seconds', { name: this.#name }, seconds);
  }
}

/**
 * Versions of different lists of one resource are compared only when both are numbers: then Kubernetes orders them
 * (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions).
 */
function isOlder(version: string, than: string): boolean {
  return DECIMAL.test(version) && DECIMAL.test(than) && BigInt(version) < BigInt(than);
}

const DECIMAL = /^[0-9]{1,20}$/;

function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/**
 * Whether the next attempt must be a list. A server that is busy, restarting or unreachable still has the version, and a list from every client
 * would add to its load. After any other error response the version itself may be the cause.
 */
function needsList(error: unknown): boolean {
  // A watch from the same version would deliver the malformed line again.
  if (isExpired(error) || error instanceof SyntaxError || error instanceof RangeError) return true;
  if (!(error instanceof ApiError) || error.status === TOO_MANY_REQUESTS) return false;
  return error.status < SERVER_ERROR || error.status === RESOURCE_VERSION_TOO_LARGE;
}
