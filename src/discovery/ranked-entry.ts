import type { DiscoveryEntry } from './entry.ts';

/** A result of a search. */
export interface RankedEntry {
  entry: DiscoveryEntry;
  /** From 0 to 1: the score of the entry relative to the best possible score of the query. */
  relevance: number;
}
