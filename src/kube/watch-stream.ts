import type { Clock } from '../lib/clock.ts';
import { type Json, member, textAt } from '../lib/json.ts';
import { refusalOf } from './answer.ts';
import type { ApiError, ResourceType } from './client.ts';
import { jsonLines } from './json-lines.ts';
import { isKubeObject, METADATA_ONLY, type Selection } from './list-pages.ts';
import { collectionPath, withQuery } from './resource-path.ts';
import type { KubeObject } from './store.ts';
import type { Transport } from './transport.ts';

/** One piece of news. A bookmark only says how far the watch has come. */
export type WatchNews<T> =
  | { readonly type: 'set' | 'deleted'; readonly object: T; readonly version: string }
  | { readonly type: 'bookmark'; readonly version: string };

export interface WatchOptions {
  transport: Transport;
  clock: Clock;
  type: ResourceType;
  selection: Selection;
  metadataOnly: boolean;
  /** Where the watch begins. */
  resourceVersion: string;
  /** After so many seconds the server ends the watch. */
  timeoutSeconds: number;
}

/** Bytes of one line; an object of the API is at most a few MiB. */
const LONGEST_LINE = 8 * 1024 * 1024;
/** The server sends a bookmark about every minute. Milliseconds. */
const LONGEST_SILENCE = 90_000;
/** A process that stood still reads first what came meanwhile. Milliseconds. */
const GRACE = 1_000;

/** The server has not said anything for longer than it ever is silent. */
class StalledWatch extends Error {
  override readonly name = 'StalledWatch';
}

/**
 * News as it arrives, until the server ends the watch. Throws ApiError when it refuses or breaks off with a status, StalledWatch, and what
 * the connection or a malformed line throws.
 */
export async function* watchStream<T extends KubeObject>(
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<readonly WatchNews<T>[]> {
  const { transport, type, selection, metadataOnly, resourceVersion, timeoutSeconds } = options;
  const { namespace, ...query } = selection;
  const watch = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds };
  const path = withQuery(collectionPath(type, namespace), { ...query, ...watch });
  const accept = metadataOnly ? METADATA_ONLY.watch : 'application/json';
  const silence = new Silence(options.clock, signal);
  try {
    const body = await transport.open({ method: 'GET', path, accept }, silence.signal);
    for await (const lines of jsonLines(body, LONGEST_LINE, () => silence.broken())) {
      yield lines.map((line) => newsOf<T>(line, type));
    }
  } catch (error) {
    if (!silence.stalled) throw error;
    transport.abandonStreams();
    throw new StalledWatch(`nothing was heard for ${LONGEST_SILENCE / 1_000} s`, { cause: error });
  } finally {
    silence.end();
  }
}

/** Aborts its signal when nothing was heard for too long, or when the outer signal does. */
class Silence {
  readonly #clock: Clock;
  readonly #over = new AbortController();
  readonly #tooLong = new AbortController();
  readonly signal: AbortSignal;
  #heard: number;

  constructor(clock: Clock, outer: AbortSignal) {
    this.#clock = clock;
    this.#heard = clock.monotonic();
    this.signal = AbortSignal.any([outer, this.#tooLong.signal]);
    void this.#listen();
  }

  get stalled(): boolean {
    return this.#tooLong.signal.aborted;
  }

  broken(): void {
    this.#heard = this.#clock.monotonic();
  }

  end(): void {
    this.#over.abort();
  }

  async #listen(): Promise<void> {
    for (let silentSince: number | undefined; ; ) {
      const left = this.#heard + LONGEST_SILENCE - this.#clock.monotonic();
      if (left <= 0 && silentSince === this.#heard) break;
      silentSince = left <= 0 ? this.#heard : undefined;
      try {
        await this.#clock.sleep(Math.max(left, GRACE), this.#over.signal);
      } catch {
        return; // over
      }
    }
    this.#tooLong.abort();
  }
}

function newsOf<T extends KubeObject>(line: Json, type: ResourceType): WatchNews<T> {
  const object = member(line, 'object');
  const version = textAt(object, ['metadata', 'resourceVersion']);
  switch (textAt(line, ['type'])) {
    case 'ADDED':
    case 'MODIFIED':
      return { type: 'set', object: wholeObject(object, version, type) as Json & T, version };
    case 'DELETED':
      return { type: 'deleted', object: wholeObject(object, version, type) as Json & T, version };
    case 'BOOKMARK':
      if (version === '') throw new SyntaxError(`a bookmark of ${type.plural} has no version`);
      return { type: 'bookmark', version };
    case 'ERROR':
      throw endedBy(object, type);
    default:
      throw new SyntaxError(`a line of the watch of ${type.plural} is no watch event`);
  }
}

function wholeObject(object: Json | undefined, version: string, type: ResourceType): Json & KubeObject {
  if (!isKubeObject(object) || version === '') {
    throw new SyntaxError(`an object in the watch of ${type.plural} has no name or no version`);
  }
  return object;
}

function endedBy(status: Json | undefined, type: ResourceType): ApiError {
  const code = member(status, 'code');
  return refusalOf(typeof code === 'number' ? code : 500, status ?? null, `watch of ${type.plural}`);
}
