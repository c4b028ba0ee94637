import { type RankedTool, ToolSearch } from '../../agent/disclosure/tool-search.ts';
import type { SearchScope } from '../../discovery/lexical/visible-entries.ts';
import type { DiscoveryQuery } from '../../discovery/port.ts';
import { UNOBSERVED } from '../../discovery/vector/embed-texts.ts';
import { HybridSearch, type VectorPart } from '../../discovery/vector/hybrid-search.ts';
import { openVectorIndex } from '../../discovery/qdrant/open-vector-index.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { JsonObject } from '../../lib/json.ts';
import { openModels } from '../../models/named-models.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { CliIo } from '../io.ts';
import { readProviders } from '../run/providers.ts';
import { environmentRedactor } from '../run/redact.ts';

/** What the vectors of one search are, and the model that made them. */
export interface ComparedVectors {
  embedder: string;
  part: VectorPart;
  /** The tools of the agent by words and meaning, as mode `Semantic` ranks them for a message with the words of the query. */
  ranked: RankedTool[];
}

interface VectorQuestion {
  query: DiscoveryQuery;
  scope: SearchScope;
  tools: readonly ToolDescriptor[];
  agent: { name: string; namespace: string };
}

/** No agent waits here, so all capabilities are embedded. */
const LIMITS = { searchMs: 120_000, entriesMs: 110_000 };

/** Embeds the query and the visible capabilities with the embedder of the file. Throws TEMPER_USAGE for a file without one. */
export async function compareVectors(
  file: string,
  { query, scope, tools, agent }: VectorQuestion,
  io: CliIo,
): Promise<ComparedVectors> {
  const models = openModels(await readProviders(file, io), {
    clock: systemClock,
    environment: io.environment,
    random: Math.random,
  });
  if (models.discovery === undefined)
    throw new TemperError('TEMPER_USAGE', `${file} has no discovery.embedder; add it, or omit --providers`);
  const { embedder } = models.discovery;
  const closing = new AbortController();
  const embed = (texts: string[], op: CallOptions) => models.pipeline.embed(texts, op);
  const search = new HybridSearch({
    index: openVectorIndex(models.discovery, systemClock),
    embedEntries: embed,
    clock: systemClock,
    redact: environmentRedactor(io.environment),
    observer: UNOBSERVED,
    closing: closing.signal,
    limits: LIMITS,
  });
  const { name, namespace } = agent;
  const caller = { id: `${namespace}/${name}`, namespace, embed, ownerOf: () => 'Namespace' as const };
  const op = { signal: io.signal, deadline: Infinity, key: ulids.next('discover') };
  try {
    const part = await search.compare(query, scope, caller, op);
    const ranked = await new ToolSearch().rankByMeaning(query.query, tools, async (asked, ofTools) => {
      const found = await search.search(asked, ofTools, caller, op);
      return found.map(({ entry: { id }, relevance }) => ({ id, relevance }));
    });
    return { embedder, part, ranked };
  } finally {
    closing.abort();
  }
}

export function vectorsJson({ embedder, part: { embedded, failure, milliseconds } }: ComparedVectors): JsonObject {
  return { embedder, embedded, milliseconds: Math.round(milliseconds), ...(failure === undefined ? {} : { failure }) };
}

export function vectorsText({ embedder, part }: ComparedVectors, visible: number): string {
  const { embedded, failure, milliseconds } = part;
  if (failure !== undefined) return `vectors: none, so this is a search by words alone. ${failure}`;
  return `vectors: ${embedded} of ${visible} capabilities, by ${embedder}, ${Math.round(milliseconds)} ms`;
}
