import { editDistance } from '../../lib/suggest.ts';
import type { SearchSteps } from './steps.ts';
import { stemOf } from './tokenizer.ts';

/** Shorter words have too many neighbours. */
const MIN_WORD = 4;
const TWO_EDITS_FROM = 8;
const MIN_HALF = 3;
/** Words with almost the letters of the given one that a search compares with it in one step. */
const STEP_WORDS = 500;
/** Words whose letters it compares in one step. */
const STEP_LETTERS = 20_000;

/** Words of one length, each with the set of its letters. */
interface WordsOfLength {
  readonly words: string[];
  readonly letters: number[];
  readonly positions: Map<string, number>;
}

/** The words of an index by length, each with the set of its letters, so that a search for near words compares few of them. */
export class Vocabulary {
  readonly #byLength = new Map<number, WordsOfLength>();

  add(word: string): void {
    if (!isComparable(word)) return;
    const known = this.#byLength.get(word.length) ?? { words: [], letters: [], positions: new Map<string, number>() };
    this.#byLength.set(word.length, known);
    if (known.positions.has(word)) return;
    known.positions.set(word, known.words.length);
    known.words.push(word);
    known.letters.push(lettersOf(word));
  }

  delete(word: string): void {
    const known = this.#byLength.get(word.length);
    const position = known?.positions.get(word);
    if (known === undefined || position === undefined) return;
    const { words, letters, positions } = known;
    positions.delete(word);
    const last = words.pop() ?? word;
    const lastLetters = letters.pop() ?? 0;
    if (last !== word) {
      words[position] = last;
      letters[position] = lastLetters;
      positions.set(last, position);
    }
    if (words.length === 0) this.#byLength.delete(word.length);
  }

  /** Words that one edit turns into the given word, or two in a long word, by the number of edits and then in the order of the alphabet. */
  *nearSteps(word: string): SearchSteps<string[]> {
    if (!isComparable(word)) return [];
    const edits = word.length >= TWO_EDITS_FROM ? 2 : 1;
    const letters = lettersOf(word);
    // By word: a change between two steps may move a word, so it may be met twice.
    const found = new Map<string, number>();
    let compared = 0;
    for (let length = word.length - edits; length <= word.length + edits; length += 1) {
      const candidates = this.#byLength.get(length);
      if (candidates === undefined) continue;
      for (let position = 0; position < candidates.words.length; position += 1) {
        if (position % STEP_LETTERS === STEP_LETTERS - 1) yield;
        // An edit changes at most two members of the set of letters.
        if (bitsOf(letters ^ (candidates.letters[position] ?? 0)) > edits * 2) continue;
        const known = candidates.words[position] ?? '';
        const distance = editDistance(word, known, edits);
        if (distance > 0 && distance <= edits) found.set(known, distance);
        compared += 1;
        if (compared % STEP_WORDS === 0) yield;
      }
    }
    return [...found].sort(([a, ofA], [b, ofB]) => ofA - ofB || (a < b ? -1 : 1)).map(([known]) => known);
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

/** Adds the bits of neighbours, in pairs, fours and eights. */
function bitsOf(value: number): number {
  const pairs = value - ((value >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
