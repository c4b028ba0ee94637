import type { DiscoveryEntry } from '../entry.ts';
import type { DiscoveryQuery } from '../port.ts';
import { withRelated } from '../graph/related.ts';
import type { RankedEntry } from '../ranked-entry.ts';
import { compareText } from './compare-text.ts';
import { type MatchedWord, matchWords } from './matched-words.ts';
import { partsOf } from './query-parts.ts';
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

/** The scores of the entries for one part of a query, by position. */
interface PartScores {
  scores: Float64Array;
  /** How much of the words of its name the part has, from 0 to 1. */
  named: Float64Array;
  /** The best score, and the best possible one. */
  top: number;
  possible: number;
}

/**
 * Returns the entries with a word of the query, best first, ties by id. Entries that the agent may not see are removed before
 * anything is counted, so neither the result nor its scores reveal them. An entry is as good as its best clause of the query, and
 * better when the rest of the query has its words too.
 */
export function search(query: DiscoveryQuery, scope: SearchScope): RankedEntry[] {
  const visible = new VisibleEntries(scope, query);
  const { words, count } = partsOf(query.query);
  const size = visible.entries.length;
  const parts = Array.from({ length: count }, () => ({
    scores: new Float64Array(size),
    named: new Float64Array(size),
    top: 0,
    possible: 0,
  }));
  for (const word of matchWords(words, visible)) {
    const wordParts = word.parts.flatMap((part) => parts[part] ?? []);
    addWord(word, wordParts, visible);
  }
  for (const part of parts) addNames(part);
  const [whole, ...clauses] = parts;
  return whole === undefined ? [] : withRelated(rank(whole, clauses, visible), visible);
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
  part.possible *= 1 + NAME_BONUS;
}

function rank(whole: PartScores, clauses: readonly PartScores[], { entries }: VisibleEntries): RankedEntry[] {
  const scores = clauses.length === 0 ? whole.scores : combine(whole, clauses);
  const first = scores.reduce((max, score) => Math.max(max, score), 0);
  const found: { entry: DiscoveryEntry; score: number }[] = [];
  for (let position = 0; position < scores.length; position += 1) {
    const score = scores[position] ?? 0;
    const entry = entries[position]?.entry;
    if (entry !== undefined && score > first * MIN_SHARE) found.push({ entry, score });
  }
  found.sort((a, b) => b.score - a.score || compareText(a.entry.id, b.entry.id));
  const relevance = Math.max(...[whole, ...clauses].map(({ top, possible }) => (possible === 0 ? 0 : top / possible)));
  return found.map(({ entry, score }) => ({ entry, relevance: (relevance * score) / first }));
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
