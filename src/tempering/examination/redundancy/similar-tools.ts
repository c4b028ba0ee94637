import type { DiscoveryEntry } from '../../../discovery/entry.ts';
import { LexicalIndex } from '../../../discovery/lexical/lexical-index.ts';
import { search } from '../../../discovery/lexical/search.ts';

interface Described {
  name: string;
  description: string;
}

/** All of the tools: those whose name and description share words with `to` first, the others in their order. Pure. */
export function bySimilarity<T extends Described>(to: Described, tools: readonly T[]): T[] {
  const byId = new Map(tools.map((tool, position) => [String(position), tool]));
  const index = LexicalIndex.of([...byId].map(([id, tool]) => entryOf(id, tool)));
  const query = { query: `${to.name} ${to.description}` };
  const found = search(query, { indexes: [index], permits: () => true }).flatMap(
    ({ entry }) => byId.get(entry.id) ?? [],
  );
  return [...new Set([...found, ...tools])];
}

function entryOf(id: string, { name, description }: Described): DiscoveryEntry {
  return { id, kind: 'emergent-tool', name, description, category: '', tags: [], requiredTools: [] };
}
