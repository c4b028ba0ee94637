import type { Clock } from '../../lib/clock.ts';
import { withRelated } from '../graph/related.ts';
import type { DiscoveryQuery } from '../port.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import { matchSteps } from './matched-words.ts';
import { partsOf } from './query-parts.ts';
import { type EntrySimilarities, rankSteps, search } from './search.ts';
import { complete } from './steps.ts';
import { type SearchScope, VisibleEntries } from './visible-entries.ts';

/** How a search came to its results. */
export interface SearchExplanation {
  /** The number of entries that the agent may see and the filters keep. */
  visible: number;
  /** Sentences that are ranked alone; 0 when the query is one. */
  clauses: number;
  words: ExplainedWord[];
  results: ExplainedResult[];
  /** What the ranking took, and what links took after it; without the time of an embedder. */
  milliseconds: { ranking: number; links: number };
}

interface ExplainedWord {
  /** The stem of a word of the query. */
  word: string;
  /** The words of entries that it is read as: itself, its halves or its probable spelling. */
  readAs: readonly string[];
  /** The number of visible entries with one of them. */
  entries: number;
}

interface ExplainedResult extends RankedEntry {
  /** The words of `readAs` that the entry has. */
  words: string[];
  /** The IDs that visible links lead to. */
  links: string[];
  /** Its relevance in a search by words alone. */
  byWords: number;
  /** The cosine with the nearest part of the query; absent without vectors, and for an entry that is not among the nearest. */
  cosine?: number;
}

/** The search again, with what it counted. It shows visible entries only, as the search does. */
export function explainSearch(
  query: DiscoveryQuery,
  scope: SearchScope,
  { monotonic }: Pick<Clock, 'monotonic'>,
  similarities?: EntrySimilarities,
): SearchExplanation {
  const visible = new VisibleEntries(scope, query);
  const { words, count } = partsOf(query.query);
  const matched = complete(matchSteps(words, visible));
  const wordsOf = new Map<string, string[]>();
  for (const form of new Set(matched.flatMap(({ forms }) => forms))) {
    visible.forEachWith(form, (position) => {
      const id = visible.entries[position]?.entry.id;
      if (id !== undefined) wordsOf.set(id, [...(wordsOf.get(id) ?? []), form]);
    });
  }
  const started = monotonic();
  const ranked = complete(rankSteps(query, visible, similarities));
  const linked = monotonic();
  const results = withRelated(ranked, visible);
  const milliseconds = { ranking: linked - started, links: monotonic() - linked };
  const byWords = new Map(search(query, scope).map(({ entry, relevance }) => [entry.id, relevance]));
  return {
    visible: visible.count,
    clauses: count - 1,
    words: matched.map(({ word, forms, count: entries }) => ({ word, readAs: forms, entries })),
    milliseconds,
    results: results.map(({ entry, relevance }) => ({
      entry,
      relevance,
      words: wordsOf.get(entry.id) ?? [],
      links: [...new Set(visible.linksOf(entry.id).map(({ other }) => other))],
      byWords: byWords.get(entry.id) ?? 0,
      ...cosineOf(similarities?.of(entry)),
    })),
  };
}

function cosineOf(similar: ArrayLike<number> | undefined): Pick<ExplainedResult, 'cosine'> {
  return similar === undefined ? {} : { cosine: Math.max(...Array.from(similar)) };
}
