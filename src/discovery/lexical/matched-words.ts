import type { QueryWord } from './query-parts.ts';
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
export function matchWords(words: readonly QueryWord[], visible: VisibleEntries): MatchedWord[] {
  let unknown = 0;
  return words.flatMap(({ word, parts, weight }) => {
    const count = visible.countWith(word);
    if (count > 0 || unknown === MAX_UNKNOWN) return [{ word, parts, weight, forms: [word], count }];
    unknown += 1;
    const halves = splitsOf(word).find((pair) => pair.every((half) => visible.countWith(half) > 0));
    if (halves === undefined) return [{ word, parts, weight: weight * NEAR_WEIGHT, ...misspelt(word, visible) }];
    return halves.map((half) => ({ word, parts, weight, forms: [half], count: visible.countWith(half) }));
  });
}

function misspelt(word: string, visible: VisibleEntries): Pick<MatchedWord, 'forms' | 'count'> {
  const near = visible.near(word).filter((known) => visible.countWith(known) > 0);
  const forms = near.slice(0, MAX_NEAR);
  const positions = new Set<number>();
  for (const form of forms) visible.forEachWith(form, (position) => positions.add(position));
  return { forms, count: positions.size };
}
