import { LexicalIndex } from '../../src/discovery/lexical/lexical-index.ts';
import { search } from '../../src/discovery/lexical/search.ts';
import { UNOBSERVED } from '../../src/discovery/vector/embed-texts.ts';
import { HybridSearch } from '../../src/discovery/vector/hybrid-search.ts';
import { MemoryVectorIndex } from '../../src/discovery/vector/memory-index.ts';
import type { CallOptions } from '../../src/lib/call-options.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openModels } from '../../src/models/named-models.ts';
import { quantile } from '../baseline/baseline.ts';
import type { BenchRow } from '../row.ts';
import { EmbedderProcess } from './embedder/embedder-process.ts';
import { firstFive, percent, type PublicTools, readPublicTools } from './public-tools.ts';

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
  const { hybrid, embed } = openHybrid(url, closing.signal);
  const caller = { id: 'bench', namespace: 'bench', embed, ownerOf: () => 'Namespace' as const };
  const compared = [];
  const times: number[] = [];
  for (const one of data.queries) {
    const op: CallOptions = { signal: closing.signal, deadline: Infinity, key: 'bench' };
    const part = await hybrid.compare(one, scope, caller, op);
    if (part.similarities === undefined) throw new Error(`bench: no vectors: ${part.failure}`);
    const started = performance.now();
    // The query is in the cache now: this is the time without the embedder.
    await hybrid.search(one, scope, caller, op);
    times.push(performance.now() - started);
    compared.push({ ...one, found: search(one, scope, part.similarities) });
  }
  closing.abort();
  const both = firstFive(compared);
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
  ];
}

function openHybrid(baseUrl: string, closing: AbortSignal) {
  const models = openModels(
    {
      providers: [{ name: 'bench', type: 'openai-compatible', baseUrl }],
      aliases: {},
      discovery: { embedder: 'bench/embedder' },
    },
    { clock: systemClock, random: Math.random, environment: {} },
  );
  const embed = (texts: string[], op: CallOptions) => models.pipeline.embed(texts, op);
  const hybrid = new HybridSearch({
    index: new MemoryVectorIndex(),
    embedEntries: embed,
    clock: systemClock,
    redact: (text) => text,
    observer: UNOBSERVED,
    closing,
    limits: { searchMs: 3_600_000, entriesMs: 3_000_000 },
  });
  return { hybrid, embed };
}
