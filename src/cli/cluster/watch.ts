import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { type CliIo, EXIT } from '../io.ts';
import { toJsonText, toYamlText } from '../objects/data-format.ts';
import { isDataFormat, type ListFormat } from '../objects/output-formats.ts';
import { printObjects } from '../objects/print-objects.ts';
import { type Cluster, errorFrom, toTemperError } from './cluster.ts';
import { streamRawRequest } from './raw-request.ts';
import { RetryBudget } from './retry-budget.ts';
import { ServerTable } from './server-table.ts';
import { emptyMessage, type Listing, listingPath, namedObject, readListing, TABLE, tableOptions } from './listing.ts';

/** Consecutive attempts to reach the API server again, one second apart. */
const RECONNECT_ATTEMPTS = 30;
/** An API server ends a watch after about an hour; a connection without data for longer is dead. */
const IDLE_MS = 2 * 3_600_000;
/** A server that ends each watch at once is not called in a loop. */
const RECONNECT_MS = 1_000;
const GONE = 410;

/** Prints the objects of a listing, then each change, until interrupted. A broken connection continues from the last change. */
export async function watchKind(cluster: Cluster, listing: Listing, output: ListFormat, io: CliIo): Promise<number> {
  const watcher = new Watcher(cluster, listing, output, io);
  const retries = new RetryBudget(RECONNECT_ATTEMPTS, io);
  await watcher.list();
  while (!io.signal.aborted) {
    try {
      await watcher.follow(() => retries.reset());
      await systemClock.sleep(RECONNECT_MS, io.signal);
    } catch (error) {
      if (io.signal.aborted) break;
      const isTransient = isTemperError(error, 'TEMPER_KUBE_UNREACHABLE') || isTemperError(error, 'TEMPER_TIMEOUT');
      if (!isTransient || !(await retries.wait('the API server cannot be reached'))) throw error;
    }
  }
  return EXIT.ok;
}

class Watcher {
  readonly #cluster: Cluster;
  readonly #listing: Listing;
  readonly #output: ListFormat;
  readonly #io: CliIo;
  #table: ServerTable | undefined;
  /** The version after which changes are still to be printed. */
  #version = '';

  constructor(cluster: Cluster, listing: Listing, output: ListFormat, io: CliIo) {
    this.#cluster = cluster;
    this.#listing = listing;
    this.#output = output;
    this.#io = io;
  }

  get #asTable(): boolean {
    return !isDataFormat(this.#output);
  }

  async list(): Promise<void> {
    const listing = this.#listing;
    const response = await readListing(this.#cluster, listing, this.#asTable, this.#io);
    this.#version = textAt(response, ['metadata', 'resourceVersion']);
    if (!this.#asTable) {
      const items = listing.name === undefined ? member(response, 'items') : [response];
      for (const item of Array.isArray(items) ? items : []) this.#printObject(item);
      return;
    }
    this.#table ??= new ServerTable(response, tableOptions(listing, this.#output === 'wide', false));
    const text = this.#table.laterText(response);
    if (text === '') this.#io.error(emptyMessage(listing.type.plural, this.#cluster, listing));
    else this.#io.out(text);
  }

  /** Prints changes until the API server ends the watch. Lists again when the version is too old to continue from. */
  async follow(onEvent: () => void): Promise<void> {
    const query = { watch: true, allowWatchBookmarks: true, resourceVersion: this.#version };
    const accept = this.#asTable ? TABLE : 'application/json';
    const call = { method: 'GET', path: listingPath(this.#listing, query), headers: { accept } } as const;
    const response = await streamRawRequest(this.#cluster.access, call, this.#io.signal, IDLE_MS);
    if ('errorResponse' in response) {
      if (response.errorResponse.status === GONE) return this.list();
      throw toTemperError(errorFrom(response.errorResponse), `watching ${this.#listing.type.plural}`, this.#cluster);
    }
    for await (const line of response.lines) {
      if (line.trim() === '') continue;
      const event = parseEvent(line);
      if (event === undefined) return;
      const isExpired = event.type === 'ERROR';
      if (isExpired) return this.list();
      onEvent();
      this.#print(event);
    }
  }

  #print({ type, object }: WatchLine): void {
    this.#version = versionOf(object) || this.#version;
    if (type === 'BOOKMARK') return;
    if (this.#asTable) this.#io.out(this.#table?.laterText(object) ?? '');
    else this.#printObject(object);
  }

  #printObject(item: Json): void {
    const named = namedObject(this.#listing.type, item);
    if (this.#output === 'json') this.#io.out(toJsonText(named.value));
    else if (this.#output === 'yaml') this.#io.out(`---\n${toYamlText(named.value)}`);
    else printObjects([named], 'name', true, this.#io);
  }
}

interface WatchLine {
  readonly type: string;
  readonly object: Json;
}

/** Undefined for a line that the end of the connection cut off. */
function parseEvent(line: string): WatchLine | undefined {
  try {
    const value = parseUntrustedJson(line);
    return { type: textAt(value, ['type']), object: member(value, 'object') ?? null };
  } catch {
    return undefined;
  }
}

/** The version of an object, or of the last row of a Table. */
function versionOf(object: Json): string {
  const rows = member(object, 'rows');
  const row = Array.isArray(rows) ? rows.at(-1) : undefined;
  const ofRow = textAt(row, ['object', 'metadata', 'resourceVersion']);
  return ofRow === '' ? textAt(object, ['metadata', 'resourceVersion']) : ofRow;
}
