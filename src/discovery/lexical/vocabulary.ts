import { editDistance } from '../../lib/suggest.ts';
import { stemOf } from './tokenizer.ts';

/** Shorter words have too many neighbours. */
const MIN_WORD = 4;
const TWO_EDITS_FROM = 8;
const MIN_HALF = 3;

/** The words of an index by length, each with the set of its letters, so that a search for near words compares few of them. */
export class Vocabulary {
  readonly #byLength = new Map<number, Map<string, number>>();

  add(word: string): void {
    if (!isComparable(word)) return;
    const words = this.#byLength.get(word.length);
    if (words === undefined) this.#byLength.set(word.length, new Map([[word, lettersOf(word)]]));
    else words.set(word, lettersOf(word));
  }

  delete(word: string): void {
    const words = this.#byLength.get(word.length);
    words?.delete(word);
    if (words?.size === 0) this.#byLength.delete(word.length);
  }

  /** Words that one edit turns into the given word, or two in a long word, by the number of edits and then in the order of the alphabet. */
  near(word: string): string[] {
    if (!isComparable(word)) return [];
    const edits = word.length >= TWO_EDITS_FROM ? 2 : 1;
    const letters = lettersOf(word);
    const found: { word: string; distance: number }[] = [];
    for (let length = word.length - edits; length <= word.length + edits; length += 1) {
      for (const [known, knownLetters] of this.#byLength.get(length) ?? []) {
        // An edit changes at most two members of the set of letters.
        if (bitsOf(letters ^ knownLetters) > edits * 2) continue;
        const distance = editDistance(word, known);
        if (distance > 0 && distance <= edits) found.push({ word: known, distance });
      }
    }
    return found.sort((a, b) => a.distance - b.distance || (a.word < b.word ? -1 : 1)).map(({ word: known }) => known);
  }
}

/** The ways to read a word as two, such as `copyediting` as `copy` and `editing`. */
export function splitsOf(word: string): [string, string][] {
  const count = Math.max(0, word.length - 2 * MIN_HALF + 1);
  return Array.from({ length: count }, (_, index) => index + MIN_HALF).map((at) => [
    stemOf(word.slice(0, at)),
    stemOf(word.slice(at)),
  ]);
}

function isComparable(word: string): boolean {
  return word.length >= MIN_WORD && /^[a-z]+$/.test(word);
}

function lettersOf(word: string): number {
  let letters = 0;
  for (let at = 0; at < word.length; at += 1) letters |= 1 << (word.charCodeAt(at) - 97);
  return letters;
}

function bitsOf(value: number): number {
  let bits = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) bits += 1;
  return bits;
}
