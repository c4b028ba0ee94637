import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { DiscoveryEntry } from '../entry.ts';
import { partsOf } from '../lexical/query-parts.ts';
import { search } from '../lexical/search.ts';
import { type SearchScope, VisibleEntries } from '../lexical/visible-entries.ts';
import type { DiscoveryQuery } from '../port.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import { type EmbeddedPart, type EmbedTexts, MAX_BATCH, type VectorObserver } from './embed-texts.ts';
import { EntryEmbedder } from './entry-embedder.ts';
import { entryText, entryTextId } from './entry-text.ts';
import { nearest } from './nearest.ts';
import type { VectorEntry, VectorHit, VectorIndex } from './port.ts';
import { type QueryCaller, QueryEmbedder } from './query-embedder.ts';
import { Similarities } from './similarities.ts';

export interface HybridSearchOptions {
  index: VectorIndex;
  /** Embeds the texts of entries at the expense of the owner of the entries. */
  embedEntries: EmbedTexts;
  clock: Clock;
  /** Removes secrets from texts before they are sent. */
  redact: (text: string) => string;
  observer: VectorObserver;
  closing: AbortSignal;
  /** The time for vectors in a search, after which it uses words alone, and the part of it in which it waits for vectors of entries. */
  limits?: { searchMs: number; entriesMs: number };
}

/** Who has an entry: all namespaces, all agents of a namespace, or the agent that searches. */
export type EntryOwner = 'Everyone' | 'Namespace' | 'Agent';

/** The agent that searches. */
export interface SearchCaller extends QueryCaller {
  namespace: string;
  /** Entries of the agent itself are embedded with its query, at its expense. */
  ownerOf: (entry: DiscoveryEntry) => EntryOwner;
}

/** What the vectors of one search are. */
export interface VectorPart {
  /** Absent: the search uses words alone. */
  similarities?: Similarities;
  /** Visible entries with a vector. */
  embedded: number;
  /** Why there are no similarities. */
  failure?: string;
  milliseconds: number;
}

const LIMITS = { searchMs: 2_000, entriesMs: 1_000 };
/** The nearest entries for each part of a query. */
const NEAREST = 100;
/** The namespace of entries that all namespaces have. No object has this name. */
const EVERYONE = '-';

/** Searches by words and by meaning. Whatever happens to the embedder or to the index, a search by words answers. */
export class HybridSearch {
  readonly #options: HybridSearchOptions;
  readonly #limits: Required<HybridSearchOptions>['limits'];
  readonly #queries: QueryEmbedder;
  readonly #entries: EntryEmbedder;
  /** Entries never change. */
  readonly #ids = new WeakMap<DiscoveryEntry, string>();

  constructor(options: HybridSearchOptions) {
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    const { observer, embedEntries } = options;
    this.#queries = new QueryEmbedder((hits, misses) => observer.cached(hits, misses));
    const saw = (vector: Float32Array | undefined): void => void this.#queries.saw(vector);
    this.#entries = new EntryEmbedder({ ...options, saw, embed: this.#observed('entries', embedEntries) });
  }

  /** The catalog may change while the vectors are read. So the words and the permissions are read at the end, at one moment. */
  async search(
    query: DiscoveryQuery,
    scope: SearchScope,
    caller: SearchCaller,
    op: CallOptions,
  ): Promise<RankedEntry[]> {
    const { similarities } = await this.compare(query, scope, caller, op);
    return search(query, scope, similarities);
  }

  /** How near the visible entries are to the query in meaning. Does not throw. */
  async compare(query: DiscoveryQuery, scope: SearchScope, caller: SearchCaller, op: CallOptions): Promise<VectorPart> {
    const { clock } = this.#options;
    const started = clock.monotonic();
    const visible = new VisibleEntries(scope, query).entries.flatMap((indexed) => indexed?.entry ?? []);
    const compared = await this.#compared(query, visible, caller, op).catch((error: unknown) => ({
      embedded: 0,
      failure: failureOf(error),
    }));
    return { ...compared, milliseconds: clock.monotonic() - started };
  }

  async #compared(
    query: DiscoveryQuery,
    visible: readonly DiscoveryEntry[],
    caller: SearchCaller,
    op: CallOptions,
  ): Promise<Omit<VectorPart, 'milliseconds'>> {
    if (visible.length === 0) return { embedded: 0 };
    const { clock, redact } = this.#options;
    return withTimeout(op, clock, this.#limits.searchMs, async (during) => {
      const texts = partsOf(query.query).texts.map((text) => redact(text.trim()));
      const own = visible.filter((entry) => caller.ownerOf(entry) === 'Agent').slice(0, MAX_BATCH - texts.length);
      const embedded = [...texts, ...own.map((entry) => redact(entryText(entry)))];
      const embed = this.#observed('query', caller.embed);
      const vectors = await this.#queries.embed(embedded, { id: caller.id, embed }, during);
      const parts = vectors.slice(0, texts.length);
      const ownVectors = vectors.slice(texts.length);
      const shared = await Promise.all(
        (['Everyone', 'Namespace'] as const).map((owner) => {
          const entries = visible.filter((entry) => caller.ownerOf(entry) === owner);
          return this.#nearest(parts, entries, owner === 'Everyone' ? EVERYONE : caller.namespace, during);
        }),
      );
      const ownEntries = own.flatMap((entry, at) => entryVector(this.#idOf(entry), ownVectors[at]));
      const hits = parts.map((part, at) => [
        ...nearest(part, ownEntries, NEAREST),
        ...shared.flatMap(({ hits: found }) => found[at] ?? []),
      ]);
      return {
        similarities: new Similarities(hits, NEAREST, (entry) => this.#idOf(entry)),
        embedded: shared.reduce((sum, { embedded: count }) => sum + count, ownEntries.length),
      };
    });
  }

  /** The nearest of the entries for each vector, and the number of entries with a vector. */
  async #nearest(
    vectors: readonly Float32Array[],
    entries: readonly DiscoveryEntry[],
    namespace: string,
    op: CallOptions,
  ): Promise<{ hits: VectorHit[][]; embedded: number }> {
    const { index, clock, redact } = this.#options;
    const byId = new Map(entries.map((entry) => [this.#idOf(entry), entry]));
    const ids = [...byId.keys()];
    if (ids.length === 0) return { hits: [], embedded: 0 };
    const space = { namespace, dimensions: vectors[0]?.length ?? 0 };
    const missing = await this.#observedIndex(() => index.missing(space, ids, op));
    const texts = missing.flatMap((id) => {
      const entry = byId.get(id);
      return entry === undefined ? [] : [{ id, text: redact(entryText(entry)) }];
    });
    await withTimeout(op, clock, this.#limits.entriesMs, (during) => this.#entries.add(space, texts, during));
    const still = missing.length === 0 ? missing : await this.#observedIndex(() => index.missing(space, ids, op));
    const hits = await this.#observedIndex(() => index.query(space, vectors, { ids, most: NEAREST }, op));
    return { hits, embedded: ids.length - still.length };
  }

  #idOf(entry: DiscoveryEntry): string {
    const known = this.#ids.get(entry);
    if (known !== undefined) return known;
    const id = entryTextId(entry);
    this.#ids.set(entry, id);
    return id;
  }

  #observed(part: EmbeddedPart, embed: EmbedTexts): EmbedTexts {
    const { observer } = this.#options;
    return (texts, op) =>
      this.#timed(
        () => embed(texts, op),
        (outcome, seconds) => observer.embedded(part, outcome, seconds),
      );
  }

  #observedIndex<T>(work: () => Promise<T>): Promise<T> {
    const { observer } = this.#options;
    return this.#timed(work, (outcome, seconds) => observer.queried(outcome, seconds));
  }

  async #timed<T>(work: () => Promise<T>, ended: (outcome: string, seconds: number) => void): Promise<T> {
    const { clock } = this.#options;
    const started = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - started) / 1_000;
    try {
      const result = await work();
      ended('ok', seconds());
      return result;
    } catch (error) {
      ended(isTemperError(error) ? error.code : 'TEMPER_INTERNAL', seconds());
      throw error;
    }
  }
}

function entryVector(id: string, vector: Float32Array | undefined): VectorEntry[] {
  return vector === undefined ? [] : [{ id, vector }];
}

function failureOf(error: unknown): string {
  const message = messageOf(error, 300);
  return isTemperError(error) ? `${error.code}: ${message}` : message;
}
