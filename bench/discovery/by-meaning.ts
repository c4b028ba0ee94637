import { LexicalIndex } from '../../src/discovery/lexical/lexical-index.ts';
import { search } from '../../src/discovery/lexical/search.ts';
import { type EmbedTexts, UNOBSERVED } from '../../src/discovery/vector/embed-texts.ts';
import { HybridSearch, type SearchCaller } from '../../src/discovery/vector/hybrid-search.ts';
import { MemoryVectorIndex } from '../../src/discovery/vector/memory-index.ts';
import type { VectorEntry, VectorFilter, VectorIndex, VectorSpace } from '../../src/discovery/vector/port.ts';
import type { SearchScope } from '../../src/discovery/lexical/visible-entries.ts';
import type { RankedEntry } from '../../src/discovery/ranked-entry.ts';
import type { CallOptions } from '../../src/lib/call-options.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openModels } from '../../src/models/named-models.ts';
import { quantile } from '../baseline/baseline.ts';
import type { BenchRow } from '../row.ts';
import { EmbedderProcess } from './embedder/embedder-process.ts';
import {
  type FirstFive,
  firstFive,
  type LabelledQuery,
  percent,
  type PublicTools,
  readPublicTools,
} from './public-tools.ts';

/** Of the tools. */
const SHARES_WITHOUT_VECTOR = [0.1, 0.5, 0.9];
/** Of the queries, while some tools have no vector. */
const MAX_LOSS = 0.01;

/**
 * What the first five results contain with the vectors of a real embedder and without, for Seal-Tools: about 10,000 texts. `EMBEDDINGS_URL`
 * names a server of `/v1/embeddings`, with `/v1`; `EMBEDDER_PYTHON`, the interpreter of `make bench-embedder`, starts one. Without either,
 * and without the public data, there is no row.
 */
export async function benchDiscoveryByMeaning(): Promise<BenchRow[]> {
  const { EMBEDDINGS_URL: url, EMBEDDER_PYTHON: python } = process.env;
  const data = await readPublicTools();
  if (data === undefined) return [];
  if (url !== undefined) return compareSearches(url, data);
  if (python === undefined) return [];
  await using embedder = await EmbedderProcess.start(python);
  return await compareSearches(embedder.url, data);
}

async function compareSearches(url: string, data: PublicTools): Promise<BenchRow[]> {
  const index = LexicalIndex.of(data.entries);
  const scope = { indexes: [index], permits: () => true };
  const words = firstFive(data.queries.map((one) => ({ ...one, found: search(one, scope) })));
  const closing = new AbortController();
  const embed = keptEmbed(url);
  const vectors = new MemoryVectorIndex();
  const caller = { id: 'bench', namespace: 'bench', embed, ownerOf: () => 'Namespace' as const };
  const op: CallOptions = { signal: closing.signal, deadline: Infinity, key: 'bench' };
  const hybrid = hybridOver(vectors, embed, closing.signal);
  const compared = [];
  const times: number[] = [];
  for (const one of data.queries) {
    const found = await searchWithVectors(hybrid, one, scope, caller, op);
    const started = performance.now();
    // The query is in the cache now: this is the time without the embedder.
    await hybrid.search(one, scope, caller, op);
    times.push(performance.now() - started);
    compared.push({ ...one, found });
  }
  const both = firstFive(compared);
  const parts = [];
  for (const share of SHARES_WITHOUT_VECTOR) {
    const partial = hybridOver(new PartialVectorIndex(vectors, share), embed, closing.signal);
    const answers = [];
    for (const one of data.queries)
      answers.push({ ...one, found: await searchWithVectors(partial, one, scope, caller, op) });
    parts.push(partialRow(share, firstFive(answers), words));
  }
  closing.abort();
  return [
    {
      name: `discovery by meaning: the first five results of ${data.queries.length} queries over ${index.size} public tools`,
      figures: {
        'one needed tool': `${percent(both.one)} (by words ${percent(words.one)})`,
        'all of several': `${percent(both.all)} (by words ${percent(words.all)})`,
        'search p50 without the embedder': `${quantile(times, 0.5).toFixed(1)} ms`,
        p95: `${quantile(times, 0.95).toFixed(1)} ms`,
      },
      limit: 'one needed tool and all of several: not below a search by words',
      met: both.one >= words.one && both.all >= words.all,
    },
    ...parts,
  ];
}

async function searchWithVectors(
  hybrid: HybridSearch,
  one: LabelledQuery,
  scope: SearchScope,
  caller: SearchCaller,
  op: CallOptions,
): Promise<RankedEntry[]> {
  const { similarities, failure } = await hybrid.compare(one, scope, caller, op);
  if (similarities === undefined) throw new Error(`bench: no vectors: ${failure}`);
  return search(one, scope, similarities);
}

/** While vectors are made, or when the embedder fails for some texts, entries with and without a vector are ranked together. */
function partialRow(share: number, found: FirstFive, words: FirstFive): BenchRow {
  return {
    name: `the same, ${percent(share)} of the tools without a vector`,
    figures: { 'one needed tool': percent(found.one), 'all of several': percent(found.all) },
    limit: `at most ${percent(MAX_LOSS)} less than a search by words`,
    met: found.one >= words.one - MAX_LOSS && found.all >= words.all - MAX_LOSS,
  };
}

/** An index that lacks a share of the vectors, the same ones each time: ids are digests. */
class PartialVectorIndex implements VectorIndex {
  readonly #whole: VectorIndex;
  readonly #share: number;

  constructor(whole: VectorIndex, share: number) {
    this.#whole = whole;
    this.#share = share;
  }

  async missing(space: VectorSpace, ids: readonly string[], op: CallOptions): Promise<string[]> {
    const lost = ids.filter((id) => this.#isLost(id));
    const others = await this.#whole.missing(space, this.#kept(ids), op);
    return [...lost, ...others];
  }

  upsert(space: VectorSpace, entries: readonly VectorEntry[], op: CallOptions): Promise<void> {
    const kept = entries.filter(({ id }) => !this.#isLost(id));
    return this.#whole.upsert(space, kept, op);
  }

  query(space: VectorSpace, vectors: readonly Float32Array[], filter: VectorFilter, op: CallOptions) {
    return this.#whole.query(space, vectors, { ...filter, ids: this.#kept(filter.ids) }, op);
  }

  #kept(ids: readonly string[]): string[] {
    return ids.filter((id) => !this.#isLost(id));
  }

  #isLost(id: string): boolean {
    return Number.parseInt(id.slice(-4), 16) < this.#share * 0x1_0000;
  }
}

/** Each text is embedded once, so that the searches that lack vectors wait for no embedder. */
function keptEmbed(baseUrl: string): EmbedTexts {
  const models = openModels(
    {
      providers: [{ name: 'bench', type: 'openai-compatible', baseUrl }],
      aliases: {},
      discovery: { embedder: 'bench/embedder' },
    },
    { clock: systemClock, random: Math.random, environment: {} },
  );
  const kept = new Map<string, Float32Array>();
  return async (texts, op) => {
    const unknown = texts.filter((text) => !kept.has(text));
    const made = unknown.length === 0 ? [] : await models.pipeline.embed(unknown, op);
    for (const [at, text] of unknown.entries()) kept.set(text, made[at] ?? new Float32Array());
    return texts.map((text) => kept.get(text) ?? new Float32Array());
  };
}

function hybridOver(index: VectorIndex, embed: EmbedTexts, closing: AbortSignal): HybridSearch {
  return new HybridSearch({
    index,
    embedEntries: embed,
    clock: systemClock,
    redact: (text) => text,
    observer: UNOBSERVED,
    closing,
    limits: { searchMs: 3_600_000, entriesMs: 3_000_000 },
  });
}
