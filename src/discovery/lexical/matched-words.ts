import type { QueryWord } from './query-parts.ts';
import type { SearchSteps } from './steps.ts';
import type { VisibleEntries } from './visible-entries.ts';
import { splitsOf } from './vocabulary.ts';

/** A word of a query, and what the indexes call it. */
export interface MatchedWord extends QueryWord {
  /** The word itself, or the words that it is probably a misspelling of. */
  forms: readonly string[];
  /** The number of visible entries with one of the forms. */
  count: number;
}

/** Unknown words of one query that are compared with other words. */
const MAX_UNKNOWN = 8;
const MAX_NEAR = 3;
const NEAR_WEIGHT = 0.6;

/**
 * The words of a query as the indexes know them. A word that no visible entry has is read as two words, or as a misspelling. Whether it is
 * unknown depends on visible entries only.
 */
export function* matchSteps(words: readonly QueryWord[], visible: VisibleEntries): SearchSteps<MatchedWord[]> {
  const matched: MatchedWord[] = [];
  let unknown = 0;
  for (const { word, parts, weight } of words) {
    const count = visible.countWith(word);
    yield;
    if (count > 0 || unknown === MAX_UNKNOWN) {
      matched.push({ word, parts, weight, forms: [word], count });
      continue;
    }
    unknown += 1;
    const halves = yield* knownHalves(word, visible);
    if (halves === undefined)
      matched.push({ word, parts, weight: weight * NEAR_WEIGHT, ...(yield* misspelt(word, visible)) });
    for (const half of halves ?? [])
      matched.push({ word, parts, weight, forms: [half], count: visible.countWith(half) });
  }
  return matched;
}

function* knownHalves(word: string, visible: VisibleEntries): SearchSteps<[string, string] | undefined> {
  for (const pair of splitsOf(word)) {
    if (pair.every((half) => visible.countWith(half) > 0)) return pair;
    yield;
  }
  return undefined;
}

function* misspelt(word: string, visible: VisibleEntries): SearchSteps<Pick<MatchedWord, 'forms' | 'count'>> {
  const near: string[] = [];
  for (const known of yield* visible.nearSteps(word)) {
    if (visible.countWith(known) > 0) near.push(known);
    yield;
  }
  const forms = near.slice(0, MAX_NEAR);
  const positions = new Set<number>();
  for (const form of forms) visible.forEachWith(form, (position) => positions.add(position));
  return { forms, count: positions.size };
}
