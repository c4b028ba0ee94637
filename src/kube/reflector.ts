import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../telemetry/log.ts';
import { Backoff } from './backoff.ts';
import { ApiError, type ResourceType } from './client.ts';
import { listAll, type Selection } from './list-pages.ts';
import type { Metrics } from './metrics.ts';
import { type Change, type KubeObject, keyOf, type Store } from './store.ts';
import type { Transport } from './transport.ts';
import { type WatchNews, watchStream } from './watch-stream.ts';

/** Why a change is told: the first list, something that happened, or a look at everything. */
export type Origin = 'initial' | 'change' | 'resync';

/** Must not wait and must not throw: it puts keys into queues, nothing else. */
export type ChangeListener<T extends KubeObject> = (change: Change<T>, origin: Origin) => void;

export interface ReflectorOptions<T extends KubeObject> {
  type: ResourceType;
  transport: Transport;
  store: Store<T>;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
  /** From 0 up to 1. */
  random: () => number;
  /** All namespaces when not given. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Only `metadata` is fetched. */
  metadataOnly?: boolean;
  /** What is kept of an object. It keeps `metadata.name`, `namespace`, `uid` and `resourceVersion`. */
  transform?: (object: T) => T;
  /** Milliseconds between looks at everything, up to a tenth more by chance; ten hours when not given. */
  resync?: number;
}

const RESYNC = 10 * 3_600_000;
const BACKOFF = { base: 800, cap: 30_000, resetAfter: 120_000 } as const;
/** A server ends a watch after minutes. One that ends it at once would be asked again and again. Milliseconds. */
const SHORT = 1_000;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;
/** What the API server answers to a version that it has not come to; after a restore of its data it never will. */
const NOT_THERE_YET = 504;

/** Keeps a store equal to what the API server has, for ever: list, then watch, then again. */
export class Reflector<T extends KubeObject> implements AsyncDisposable {
  readonly store: Store<T>;
  readonly #options: ReflectorOptions<T>;
  readonly #name: string;
  readonly #stopping = new AbortController();
  readonly #backoff: Backoff;
  readonly #listeners: ChangeListener<T>[] = [];
  readonly #waiting = new Set<() => void>();
  #running: Promise<unknown> | undefined;
  /** As far as the store has come; undefined when only a list can tell. */
  #version: string | undefined;
  #synced = false;
  #listedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.store = options.store;
    const { plural, group } = options.type;
    this.#name = group === '' ? plural : `${plural}.${group}`;
    this.#backoff = new Backoff({ ...BACKOFF, clock: options.clock, random: options.random });
    for (const name of ['reflector_lists_total', 'reflector_watches_total', 'reflector_short_watches_total'] as const) {
      this.#count(name, 0);
    }
  }

  /** The first list is in the store. */
  get hasSynced(): boolean {
    return this.#synced;
  }

  /** Resolves when the first list is in the store; rejects with the reason of the signal. */
  synced(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#synced) {
        resolve();
        return;
      }
      signal.throwIfAborted();
      const done = (): void => {
        signal.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = (): void => {
        this.#waiting.delete(done);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#waiting.add(done);
    });
  }

  /** Who subscribes late is told of what is there as of a first list. */
  subscribe(listener: ChangeListener<T>): void {
    this.#listeners.push(listener);
    for (const object of this.store.list()) {
      this.#tell(listener, { type: 'added', key: keyOf(object), object }, 'initial');
    }
  }

  /** A second call does nothing. */
  start(): void {
    this.#running ??= Promise.all([this.#follow(), this.#lookAtEverything()]);
  }

  /** Ends list and watch; resolves when nothing of it runs any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #follow(): Promise<void> {
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
    const { items, resourceVersion } = await listAll<T>(transport, type, this.#selection(), signal, metadataOnly);
    const changes = this.store.replace(items.map((item) => this.#kept(item)));
    this.#version = resourceVersion;
    this.#listedAt = this.#options.clock.monotonic();
    const origin = this.#synced ? 'change' : 'initial';
    this.#synced = true;
    this.#tellAll(changes, origin);
    for (const done of this.#waiting) done();
    this.#waiting.clear();
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { transport, clock, type, metadataOnly = false, random } = this.#options;
    const timeoutSeconds = 300 + Math.floor(random() * 300);
    const selection = this.#selection();
    const watch = { transport, clock, type, selection, metadataOnly, resourceVersion, timeoutSeconds };
    const begun = clock.monotonic();
    this.#count('reflector_watches_total');
    for await (const batch of watchStream<T>(watch, signal)) {
      for (const news of batch) this.#take(news);
    }
    if (clock.monotonic() - begun < SHORT) {
      this.#count('reflector_short_watches_total');
      throw new Error('the watch ended at once');
    }
  }

  #take(news: WatchNews<T>): void {
    if (news.type === 'set') this.#tellAll(this.store.set(this.#kept(news.object)), 'change');
    else if (news.type === 'deleted') {
      const object = this.#kept(news.object);
      this.#tellAll(this.store.delete(keyOf(object), object), 'change');
    }
    this.#version = news.version;
  }

  /** Waits, but for a version that became too old: a list is tried at once then, since nothing failed. */
  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const wasListing = this.#version === undefined;
    // A server that forgets at once what it just said would be listed without end.
    const becameOld = isExpired(error) && !wasListing && clock.monotonic() - this.#listedAt >= SHORT;
    if (needsList(error)) this.#version = undefined;
    if (becameOld) {
      log.info({ resource: this.#name }, 'the watch fell behind; everything is listed again');
      return;
    }
    const wait = this.#backoff.next();
    const fields = { resource: this.#name, wait: Math.round(wait), relist: this.#version === undefined, error };
    log.warn(fields, wasListing ? 'list failed; it is tried again' : 'watch ended; it is begun again');
    try {
      await clock.sleep(wait, signal);
    } catch (reason) {
      if (!signal.aborted) throw reason;
    }
  }

  /** What nobody told of is noticed at the latest by this. */
  async #lookAtEverything(): Promise<void> {
    const { clock, random, resync = RESYNC } = this.#options;
    const { signal } = this.#stopping;
    for (;;) {
      try {
        await clock.sleep(resync * (1 + random() / 10), signal);
      } catch (reason) {
        if (signal.aborted) return;
        throw reason;
      }
      const changes = this.store.list().map((object) => {
        return { type: 'updated', key: keyOf(object), object, before: object } as const;
      });
      this.#tellAll(changes, 'resync');
    }
  }

  #kept(object: T): T {
    return this.#options.transform?.(object) ?? object;
  }

  #tellAll(changes: readonly Change<T>[], origin: Origin): void {
    for (const change of changes) {
      for (const listener of this.#listeners) this.#tell(listener, change, origin);
    }
  }

  #tell(listener: ChangeListener<T>, change: Change<T>, origin: Origin): void {
    try {
      listener(change, origin);
    } catch (error) {
      // One listener's defect must not keep the news from the others.
      this.#options.log.error({ resource: this.#name, key: change.key, error }, 'a listener of changes threw');
    }
  }

  #selection(): Selection {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }

  #count(name: 'reflector_lists_total' | 'reflector_watches_total' | 'reflector_short_watches_total', by = 1): void {
    this.#options.metrics.count(name, { name: this.#name }, by);
  }
}

function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/**
 * A server that is busy, restarting or out of reach has not forgotten the version: a list of all who watch would be the last thing it needs.
 * Whatever else it says, the version may be what it does not like.
 */
function needsList(error: unknown): boolean {
  // A line that cannot be read is there again when the watch begins again before it.
  if (isExpired(error) || error instanceof SyntaxError || error instanceof RangeError) return true;
  if (!(error instanceof ApiError) || error.status === TOO_MANY_REQUESTS) return false;
  return error.status < SERVER_ERROR || error.status === NOT_THERE_YET;
}
