import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { DiscoveryEntry } from '../entry.ts';
import { partsOf } from '../lexical/query-parts.ts';
import { search } from '../lexical/search.ts';
import { type SearchScope, VisibleEntries } from '../lexical/visible-entries.ts';
import type { DiscoveryQuery } from '../port.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import type { EmbeddedPart, EmbedTexts, VectorObserver } from './embed-texts.ts';
import { EntryEmbedder, type EntryText } from './entry-embedder.ts';
import { entryText, entryTextId } from './entry-text.ts';
import { nearest } from './nearest.ts';
import { OwnVectors } from './own-vectors.ts';
import type { VectorHit, VectorIndex } from './port.ts';
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
  /** Entries of the agent itself are embedded at its expense. */
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

/** What was found among the entries of one owner. */
interface FoundVectors {
  /** For each vector of the query, the nearest entries. */
  hits: VectorHit[][];
  /** Entries with a vector. */
  compared: string[];
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
  readonly #own: OwnVectors;
  /** Entries never change. */
  readonly #ids = new WeakMap<DiscoveryEntry, string>();

  constructor(options: HybridSearchOptions) {
    this.#options = options;
    this.#limits = options.limits ?? LIMITS;
    const { observer, embedEntries } = options;
    this.#queries = new QueryEmbedder((hits, misses) => observer.cached(hits, misses));
    const saw = (vector: Float32Array | undefined): void => void this.#queries.saw(vector);
    this.#entries = new EntryEmbedder({ ...options, saw, embed: this.#observed('entries', embedEntries) });
    this.#own = new OwnVectors(this.#queries, options.clock);
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
      const payer = { id: caller.id, embed: this.#observed('query', caller.embed) };
      const parts = await this.#queries.embed(texts, payer, during);
      const of = (owner: EntryOwner): DiscoveryEntry[] => visible.filter((entry) => caller.ownerOf(entry) === owner);
      const found = await Promise.all([
        this.#ownNearest(parts, of('Agent'), payer, during),
        this.#nearest(parts, of('Everyone'), EVERYONE, during),
        this.#nearest(parts, of('Namespace'), caller.namespace, during),
      ]);
      const similarities = new Similarities({
        hits: parts.map((_, at) => found.flatMap(({ hits }) => hits[at] ?? [])),
        most: NEAREST,
        compared: new Set(found.flatMap(({ compared }) => compared)),
        idOf: (entry) => this.#idOf(entry),
      });
      return { similarities, embedded: found.reduce((sum, { compared }) => sum + compared.length, 0) };
    });
  }

  async #ownNearest(
    vectors: readonly Float32Array[],
    entries: readonly DiscoveryEntry[],
    payer: QueryCaller,
    op: CallOptions,
  ): Promise<FoundVectors> {
    const texts = this.#textsOf(entries);
    const found = await withTimeout(op, this.#options.clock, this.#limits.entriesMs, (during) =>
      this.#own.of(texts, payer, during),
    );
    // The cache of queries may have vectors of the model before.
    const known = found.filter(({ vector }) => vector.length === vectors[0]?.length);
    return { hits: vectors.map((wanted) => nearest(wanted, known, NEAREST)), compared: known.map(({ id }) => id) };
  }

  async #nearest(
    vectors: readonly Float32Array[],
    entries: readonly DiscoveryEntry[],
    namespace: string,
    op: CallOptions,
  ): Promise<FoundVectors> {
    const { index, clock } = this.#options;
    const byId = new Map(entries.map((entry) => [this.#idOf(entry), entry]));
    const ids = [...byId.keys()];
    if (ids.length === 0) return { hits: [], compared: [] };
    const space = { namespace, dimensions: vectors[0]?.length ?? 0 };
    const missing = await this.#observedIndex(() => index.missing(space, ids, op));
    const texts = this.#textsOf(missing.flatMap((id) => byId.get(id) ?? []));
    await withTimeout(op, clock, this.#limits.entriesMs, (during) => this.#entries.add(space, texts, during));
    const still = missing.length === 0 ? missing : await this.#observedIndex(() => index.missing(space, ids, op));
    const hits = await this.#observedIndex(() => index.query(space, vectors, { ids, most: NEAREST }, op));
    const without = new Set(still);
    return { hits, compared: ids.filter((id) => !without.has(id)) };
  }

  /** Each text once. */
  #textsOf(entries: readonly DiscoveryEntry[]): EntryText[] {
    const { redact } = this.#options;
    const byId = new Map(entries.map((entry) => [this.#idOf(entry), entry]));
    return [...byId].map(([id, entry]) => ({ id, text: redact(entryText(entry)) }));
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

function failureOf(error: unknown): string {
  const message = messageOf(error, 300);
  return isTemperError(error) ? `${error.code}: ${message}` : message;
}
