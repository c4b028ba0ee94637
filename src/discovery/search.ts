import type { DiscoveryEntry } from './entry.ts';
import type { IndexedEntry, LexicalIndex } from './lexical-index.ts';
import type { DiscoveryQuery } from './port.ts';
import { wordsOf } from './words.ts';

export interface Ranked {
  entry: DiscoveryEntry;
  /** From 0 to 1: how much of what the query could be worth this entry has. */
  relevance: number;
}

export interface SearchScope {
  /** In lookup order: of two entries with one id, the one of the earlier index counts. */
  indexes: readonly LexicalIndex[];
  /** May the agent know of it? */
  permits: (entry: DiscoveryEntry) => boolean;
}

const MOST_QUERY_WORDS = 32;
/** Okapi BM25: how soon repeating a word stops to help, and how much a long text is held against it. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

/**
 * Entries with a word of the query, best first, ties by id. What may not be seen is left out before anything is counted: the
 * answer, its figures included, is the same as if it were not there.
 */
export function search(query: DiscoveryQuery, scope: SearchScope): Ranked[] {
  const words = [...new Set(wordsOf(query.query))].slice(0, MOST_QUERY_WORDS);
  const found = candidates(words, query, scope);
  const average = found.reduce((sum, { length }) => sum + length, 0) / Math.max(1, found.length);
  const scores = found.map(() => 0);
  let best = 0;
  for (const word of words) {
    const holding = found.reduce((count, { words: held }) => count + Number(held.has(word)), 0);
    const rarity = Math.log(1 + (found.length - holding + 0.5) / (holding + 0.5));
    best += rarity;
    for (const [index, { words: held, length }] of found.entries()) {
      const count = held.get(word);
      if (count === undefined) continue;
      const damping = SATURATION * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * length) / average);
      scores[index] = (scores[index] ?? 0) + (rarity * count) / (count + damping);
    }
  }
  return found
    .map(({ entry }, index) => ({ entry, relevance: (scores[index] ?? 0) / best }))
    .sort((a, b) => b.relevance - a.relevance || compareText(a.entry.id, b.entry.id));
}

/** Everything that may be seen, passes the filters and has a word of the query. */
function candidates(words: readonly string[], query: DiscoveryQuery, { indexes, permits }: SearchScope) {
  const byId = new Map<string, IndexedEntry>();
  const kind = query.kind?.toLowerCase();
  const category = query.category?.toLowerCase();
  for (const index of indexes) {
    const looked = new Set<IndexedEntry>();
    for (const word of words) {
      for (const indexed of index.withWord(word)) {
        const { entry } = indexed;
        if (looked.has(indexed)) continue;
        looked.add(indexed);
        if (kind !== undefined && entry.kind !== kind) continue;
        if (category !== undefined && entry.category.toLowerCase() !== category) continue;
        if (!byId.has(entry.id) && permits(entry)) byId.set(entry.id, indexed);
      }
    }
  }
  // In an order of their own, so that sums do not depend on which entry was made first.
  return [...byId.values()].sort((a, b) => compareText(a.entry.id, b.entry.id));
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
