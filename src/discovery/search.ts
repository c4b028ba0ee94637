import type { DiscoveryEntry } from './entry.ts';
import type { IndexedEntry, LexicalIndex } from './lexical-index.ts';
import type { DiscoveryQuery } from './port.ts';
import { tokenize } from './tokenizer.ts';

export interface RankedEntry {
  entry: DiscoveryEntry;
  /** From 0 to 1: the score of the entry relative to the best possible score of the query. */
  relevance: number;
}

export interface SearchScope {
  /** In lookup order: for entries with the same id, the earlier index wins. */
  indexes: readonly LexicalIndex[];
  /** Whether the agent may see the entry. */
  permits: (entry: DiscoveryEntry) => boolean;
}

const MAX_QUERY_WORDS = 32;
/** Parameters k1 (saturation of repeated words) and b (length normalisation) of Okapi BM25. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

/**
 * Returns the entries with a word of the query, best first, ties by id. Entries that the agent may not see are removed before
 * the statistics are computed, so the result, its scores included, does not reveal them.
 */
export function search(query: DiscoveryQuery, scope: SearchScope): RankedEntry[] {
  const words = [...new Set(tokenize(query.query))].slice(0, MAX_QUERY_WORDS);
  const found = candidates(words, query, scope);
  const average = found.reduce((sum, { length }) => sum + length, 0) / Math.max(1, found.length);
  const scores = found.map(() => 0);
  let best = 0;
  for (const word of words) {
    const containing = found.reduce((count, { words: entryWords }) => count + Number(entryWords.has(word)), 0);
    const rarity = Math.log(1 + (found.length - containing + 0.5) / (containing + 0.5));
    best += rarity;
    for (const [index, { words: entryWords, length }] of found.entries()) {
      const count = entryWords.get(word);
      if (count === undefined) continue;
      const damping = SATURATION * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * length) / average);
      scores[index] = (scores[index] ?? 0) + (rarity * count) / (count + damping);
    }
  }
  return found
    .map(({ entry }, index) => ({ entry, relevance: (scores[index] ?? 0) / best }))
    .sort((a, b) => b.relevance - a.relevance || compareText(a.entry.id, b.entry.id));
}

/** All visible entries that pass the filters and have a word of the query. */
function candidates(words: readonly string[], query: DiscoveryQuery, { indexes, permits }: SearchScope) {
  const byId = new Map<string, IndexedEntry>();
  const kind = query.kind?.toLowerCase();
  const category = query.category?.toLowerCase();
  for (const index of indexes) {
    const seen = new Set<IndexedEntry>();
    for (const word of words) {
      for (const indexed of index.entriesWith(word)) {
        const { entry } = indexed;
        if (seen.has(indexed)) continue;
        seen.add(indexed);
        if (kind !== undefined && entry.kind !== kind) continue;
        if (category !== undefined && entry.category.toLowerCase() !== category) continue;
        if (!byId.has(entry.id) && permits(entry)) byId.set(entry.id, indexed);
      }
    }
  }
  // Sorted by id, so that the sums do not depend on the order of creation.
  return [...byId.values()].sort((a, b) => compareText(a.entry.id, b.entry.id));
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
