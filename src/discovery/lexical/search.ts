import type { DiscoveryEntry } from '../entry.ts';
import type { DiscoveryQuery } from '../port.ts';
import { withRelated } from '../graph/related.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import { compareText } from './compare-text.ts';
import { type MatchedWord, matchSteps } from './matched-words.ts';
import { partsOf } from './query-parts.ts';
import { complete, type SearchSteps } from './steps.ts';
import { type SearchScope, VisibleEntries } from './visible-entries.ts';

/** Parameters k1 (saturation of repeated words) and b (length normalisation) of Okapi BM25. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;
/** Added to the score, as a fraction of it, when the query has all words of a name. */
const NAME_BONUS = 0.3;
/** The weight of the whole query beside the best clause. */
const WHOLE_WEIGHT = 0.5;
/** Entries below this share of the best score are no results: they have a common word of the query only. */
const MIN_SHARE = 0.1;
/** The same for entries without words of the query: something is nearest in meaning to any query. */
const MIN_SHARE_WITHOUT_WORDS = 0.5;

/** The weight of the similarity of meaning beside the score of the words, which is at most 1. See docs/adr/0119-vectors-join-a-search-by-words.md. */
const SIMILARITY_WEIGHT = 1.5;

/** How near entries are in meaning to the parts of the query. */
export interface EntrySimilarities {
  /** For each part of the query, from 0 to 1. Undefined for an entry that is not near. */
  of(entry: DiscoveryEntry): ArrayLike<number> | undefined;
  /** For each part, what counts for an entry with words of the part that is not near. */
  ofOther(entry: DiscoveryEntry): EstimatedSimilarity;
}

/** For each part, the similarity of an entry that has hardly any words of it, and of the entry that has the best ones. */
export interface EstimatedSimilarity {
  least: ArrayLike<number>;
  most: ArrayLike<number>;
}

/** The scores of the entries for one part of a query, by position. */
interface PartScores {
  scores: Float64Array;
  /** How much of the words of its name the part has, from 0 to 1. */
  named: Float64Array;
  /** The best score, and the best possible one of words. */
  top: number;
  possible: number;
  /** How much of the part the best entry has, from 0 to 1. */
  relevance: number;
}

interface RankedPosition {
  position: number;
  score: number;
}

/**
 * Returns the entries with a word of the query, best first, ties by id. Entries that the agent may not see are removed before
 * anything is counted, so neither the result nor its scores reveal them. An entry is as good as its best clause of the query, and
 * better when the rest of the query has its words too. With similarities, entries that are near in meaning are results without its words.
 */
export function search(query: DiscoveryQuery, scope: SearchScope, similarities?: EntrySimilarities): RankedEntry[] {
  return complete(searchSteps(query, scope, similarities));
}

/**
 * The same in steps. The indexes may change between them: the entries and their words are those of the first step. Only probable spellings and
 * links are read later.
 */
export function* searchSteps(
  query: DiscoveryQuery,
  scope: SearchScope,
  similarities?: EntrySimilarities,
): SearchSteps<RankedEntry[]> {
  const visible = new VisibleEntries(scope, query);
  yield;
  const ranked = yield* rankSteps(query, visible, similarities);
  yield;
  return withRelated(ranked, visible);
}

/** The results of `search` before links count. */
export function* rankSteps(
  query: DiscoveryQuery,
  visible: VisibleEntries,
  similarities?: EntrySimilarities,
): SearchSteps<RankedEntry[]> {
  const { words, count } = partsOf(query.query);
  const size = visible.entries.length;
  const parts = Array.from({ length: count }, () => ({
    scores: new Float64Array(size),
    named: new Float64Array(size),
    top: 0,
    possible: 0,
    relevance: 0,
  }));
  for (const word of yield* matchSteps(words, visible)) {
    const wordParts = word.parts.flatMap((part) => parts[part] ?? []);
    addWord(word, wordParts, visible);
    yield;
  }
  for (const part of parts) {
    addNames(part);
    yield;
  }
  const [whole, ...clauses] = parts;
  if (whole === undefined) return [];
  const byWords = whole.scores.slice();
  if (similarities !== undefined) {
    addSimilarities(parts, visible, similarities);
    yield;
  }
  return rank(whole, clauses, visible, byWords);
}

function addWord(word: MatchedWord, parts: readonly PartScores[], visible: VisibleEntries): void {
  const { forms, count, weight: importance } = word;
  const rarity = importance * Math.log(1 + (visible.count - count + 0.5) / (count + 0.5));
  const seen = forms.length > 1 ? new Set<number>() : undefined;
  for (const part of parts) part.possible += rarity;
  for (const form of forms) {
    visible.forEachWith(form, (position, weight) => {
      if (seen?.has(position) === true) return;
      seen?.add(position);
      const damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * (visible.lengths[position] ?? 1));
      const score = (rarity * weight) / (weight + damping);
      for (const { scores } of parts) scores[position] = (scores[position] ?? 0) + score;
    });
    visible.forEachNamed(form, (position, fraction) => {
      for (const { named } of parts) named[position] = (named[position] ?? 0) + importance * fraction;
    });
  }
}

function addNames(part: PartScores): void {
  const { scores, named } = part;
  for (let position = 0; position < scores.length; position += 1) {
    const score = (scores[position] ?? 0) * (1 + NAME_BONUS * Math.min(1, named[position] ?? 0));
    scores[position] = score;
    part.top = Math.max(part.top, score);
  }
  part.relevance = part.possible === 0 ? 0 : part.top / (part.possible * (1 + NAME_BONUS));
}

/** The score of words as a share of the best one, plus the weighted similarity. */
function addSimilarities(parts: readonly PartScores[], { entries }: VisibleEntries, near: EntrySimilarities): void {
  const factors = parts.map(({ top }) => (top === 0 ? 0 : 1 / top));
  for (const part of parts) part.top = 0;
  for (const [position, indexed] of entries.entries()) {
    if (indexed === undefined) continue;
    const similar = near.of(indexed.entry);
    for (const [at, part] of parts.entries()) {
      const words = (part.scores[position] ?? 0) * (factors[at] ?? 0);
      const similarity = similar?.[at] || (words > 0 ? estimated(near.ofOther(indexed.entry), at, words) : 0);
      const score = words + SIMILARITY_WEIGHT * similarity;
      part.scores[position] = score;
      part.top = Math.max(part.top, score);
      part.relevance = Math.max(part.relevance, similarity);
    }
  }
}

/** `words`: the score of the words as a share of the best one. */
function estimated({ least, most }: EstimatedSimilarity, part: number, words: number): number {
  const low = least[part] ?? 0;
  return low + words * ((most[part] ?? 0) - low);
}

function rank(
  whole: PartScores,
  clauses: readonly PartScores[],
  { entries }: VisibleEntries,
  byWords: Float64Array,
): RankedEntry[] {
  const scores = clauses.length === 0 ? whole.scores : combine(whole, clauses);
  let first = 0;
  for (let position = 0; position < scores.length; position += 1) first = Math.max(first, scores[position] ?? 0);
  const found: RankedPosition[] = [];
  for (let position = 0; position < scores.length; position += 1) {
    const score = scores[position] ?? 0;
    const share = (byWords[position] ?? 0) > 0 ? MIN_SHARE : MIN_SHARE_WITHOUT_WORDS;
    if (score > first * share) found.push({ position, score });
  }
  const idOf = ({ position }: RankedPosition): string => entries[position]?.entry.id ?? '';
  found.sort((a, b) => b.score - a.score || compareText(idOf(a), idOf(b)));
  const relevance = Math.max(...[whole, ...clauses].map((part) => part.relevance));
  return found.flatMap(({ position, score }) => {
    const entry = entries[position]?.entry;
    return entry === undefined ? [] : { entry, relevance: (relevance * score) / first };
  });
}

/** The best clause of each entry, relative to the best entry of the clause, and the whole query. */
function combine(whole: PartScores, clauses: readonly PartScores[]): Float64Array {
  const combined = new Float64Array(whole.scores.length);
  for (const { scores, top } of clauses) {
    if (top === 0) continue;
    for (let position = 0; position < combined.length; position += 1) {
      combined[position] = Math.max(combined[position] ?? 0, (scores[position] ?? 0) / top);
    }
  }
  const factor = whole.top === 0 ? 0 : WHOLE_WEIGHT / whole.top;
  for (let position = 0; position < combined.length; position += 1) {
    combined[position] = (combined[position] ?? 0) + factor * (whole.scores[position] ?? 0);
  }
  return combined;
}
