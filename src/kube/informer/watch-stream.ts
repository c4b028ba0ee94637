import type { Clock } from '../../lib/clock.ts';
import { type Json, member, textAt } from '../../lib/json.ts';
import { errorFrom } from '../client/response.ts';
import type { ApiError, ResourceType } from '../client/kube-client.ts';
import { jsonLines } from './json-lines.ts';
import { isKubeObject, METADATA_ONLY, type ObjectSelection } from '../client/list.ts';
import { collectionPath, withQuery } from '../client/resource-path.ts';
import type { KubeObject } from './store.ts';
import type { Transport } from '../client/transport.ts';

/** A watch event. A bookmark only reports the current resourceVersion of the watch. */
export type WatchEvent<T> =
  | { readonly type: 'set' | 'deleted'; readonly object: T; readonly version: string }
  | { readonly type: 'bookmark'; readonly version: string };

export interface WatchStreamOptions {
  transport: Transport;
  clock: Clock;
  type: ResourceType;
  selection: ObjectSelection;
  metadataOnly: boolean;
  /** The version from which to watch. */
  resourceVersion: string;
  /** The server ends the watch after this many seconds. */
  timeoutSeconds: number;
}

/** The maximum size of one line; an API object is at most a few MiB. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;
/** The server sends a bookmark about every minute, so a longer pause means that the connection is dead. */
const MAX_IDLE_MS = 90_000;
/** After a blocked event loop, the time to read data that has already arrived before the watch counts as stalled. */
const STALL_GRACE_MS = 1_000;

/** The server sent nothing for longer than the bookmark interval. */
export class StalledWatch extends Error {
  override readonly name = 'StalledWatch';
}

/**
 * Yields watch events in batches, until the server ends the watch. Throws ApiError for an error response or an ERROR event, StalledWatch,
 * SyntaxError or RangeError for a malformed or too long line, and the errors of `Transport.open`.
 */
export async function* watchStream<T extends KubeObject>(
  options: WatchStreamOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly WatchEvent<T>[]> {
  const { transport, type, selection, metadataOnly, resourceVersion, timeoutSeconds } = options;
  const { namespace, ...query } = selection;
  const watch = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds };
  const path = withQuery(collectionPath(type, namespace), { ...query, ...watch });
  const accept = metadataOnly ? METADATA_ONLY.watch : 'application/json';
  const watchdog = new IdleWatchdog(options.clock, signal);
  try {
    const body = await transport.open({ method: 'GET', path, accept }, watchdog.signal);
    for await (const lines of jsonLines(body, MAX_LINE_BYTES, () => watchdog.touch())) {
      yield lines.map((line) => parseWatchEvent<T>(line, type));
    }
  } catch (error) {
    if (!watchdog.stalled) throw error;
    transport.retireStreamConnection();
    throw new StalledWatch(`the watch received no data for ${MAX_IDLE_MS / 1_000} s`, { cause: error });
  } finally {
    watchdog.stop();
  }
}

/** Aborts its signal when no data arrived for MAX_IDLE_MS, or when the outer signal aborts. */
class IdleWatchdog {
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  readonly #stalled = new AbortController();
  readonly signal: AbortSignal;
  #lastData: number;

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock;
    this.#lastData = clock.monotonic();
    this.signal = AbortSignal.any([outer, this.#stalled.signal]);
    void this.#run();
  }

  get stalled(): boolean {
    return this.#stalled.signal.aborted;
  }

  /** Records that data arrived. */
  touch(): void {
    this.#lastData = this.#clock.monotonic();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #run(): Promise<void> {
    for (let idleSince: number | undefined; ; ) {
      const remaining = this.#lastData + MAX_IDLE_MS - this.#clock.monotonic();
      if (remaining <= 0 && idleSince === this.#lastData) break;
      idleSince = remaining <= 0 ? this.#lastData : undefined;
      try {
        await this.#clock.sleep(Math.max(remaining, STALL_GRACE_MS), this.#stopped.signal);
      } catch {
        return; // stopped
      }
    }
    this.#stalled.abort();
  }
}

function parseWatchEvent<T extends KubeObject>(line: Json, type: ResourceType): WatchEvent<T> {
  const object = member(line, 'object');
  const version = textAt(object, ['metadata', 'resourceVersion']);
  switch (textAt(line, ['type'])) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'set', object: wholeObject(object, version, type) as Json & T, version };
    case 'DELETED':
      return { type: 'deleted', object: wholeObject(object, version, type) as Json & T, version };
    case 'BOOKMARK':
      if (version === '') throw new SyntaxError(`a bookmark in the watch of ${type.plural} has no resourceVersion`);
      return { type: 'bookmark', version };
    case 'ERROR':
      throw errorOf(object, type);
    default:
      throw new SyntaxError(`a line in the watch of ${type.plural} is not a valid watch event`);
  }
}

function wholeObject(object: Json | undefined, version: string, type: ResourceType): Json & KubeObject {
  if (!isKubeObject(object) || version === '') {
    throw new SyntaxError(`an object in the watch of ${type.plural} has no name or no resourceVersion`);
  }
  return object;
}

/** The error of an ERROR event. */
function errorOf(status: Json | undefined, type: ResourceType): ApiError {
  const code = member(status, 'code');
  return errorFrom(typeof code === 'number' ? code : 500, status ?? null, `watch of ${type.plural}`);
}
