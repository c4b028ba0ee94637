import type { Json } from '../../lib/json.ts';

/** Distinct words of a query that count; the others are ignored. */
export const MAX_QUERY_WORDS = 16;
/** Characters that one search reads, over all keys and values. */
const MAX_SEARCHED_CHARACTERS = 1_048_576;

const KEY_WEIGHT = 3;
/** Parameters of BM25: saturation of repeated words, and influence of the length of a document. */
const SATURATION = 1.2;
const LENGTH_INFLUENCE = 0.75;

/** What a search reads of an entry: its key, and its value as text. */
interface SearchedText {
  key: string;
  text: string;
}

/** What one search needs to know of an entry: how often it has each query word, and how long it is in words. */
interface WordCounts<Entry> {
  entry: Entry;
  /** By the position of the query word. */
  counts: number[];
  words: number;
}

/**
 * Okapi BM25 over the words of key and value, with triple weight for the key; entries without any query word are omitted.
 * One pass over at most `budget` characters: all keys, and the beginning of each value that is longer than its share.
 */
export function rankTexts<Entry extends SearchedText>(
  entries: readonly Entry[],
  query: string,
  budget = MAX_SEARCHED_CHARACTERS,
): Entry[] {
  const queryWords = firstWords(query, MAX_QUERY_WORDS);
  const texts = searchedTexts(entries, budget);
  const documents = entries.map((entry, index) => countWords(entry, texts[index] ?? '', queryWords));
  const average = documents.reduce((sum, { words }) => sum + words, 0) / Math.max(1, documents.length);
  const weights = [...queryWords.values()].map((position) => {
    const containing = documents.filter(({ counts }) => (counts[position] ?? 0) > 0).length;
    return Math.log(1 + (documents.length - containing + 0.5) / (containing + 0.5));
  });
  const scored = documents.map(({ entry, counts, words }) => {
    const length = 1 - LENGTH_INFLUENCE + LENGTH_INFLUENCE * (words / Math.max(1, average));
    const scores = counts.map((count, position) =>
      count === 0 ? 0 : ((weights[position] ?? 0) * count * (SATURATION + 1)) / (count + SATURATION * length),
    );
    return { entry, score: scores.reduce((sum, score) => sum + score, 0) };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.entry.key < b.entry.key ? -1 : 1))
    .map(({ entry }) => entry);
}

function countWords<Entry extends SearchedText>(
  entry: Entry,
  text: string,
  queryWords: ReadonlyMap<string, number>,
): WordCounts<Entry> {
  const counts = Array.from(queryWords, () => 0);
  let words = 0;
  for (const [source, weight] of [[entry.key, KEY_WEIGHT] as const, [text, 1] as const]) {
    for (const word of wordsOf(source)) {
      words += weight;
      const position = queryWords.get(word);
      if (position !== undefined) counts[position] = (counts[position] ?? 0) + weight;
    }
  }
  return { entry, counts, words };
}

/** The text of each value. Values above their equal share of the budget are cut, so that no entry keeps another one out. */
function searchedTexts(entries: readonly SearchedText[], budget: number): string[] {
  const texts = entries.map(({ text }) => text);
  let left = budget - entries.reduce((sum, { key }) => sum + key.length, 0);
  const byLength = texts.map(({ length }) => length).toSorted((a, b) => a - b);
  let share = Number.POSITIVE_INFINITY;
  for (const [index, length] of byLength.entries()) {
    const equal = Math.max(0, Math.floor(left / (byLength.length - index)));
    if (length > equal) {
      share = equal;
      break;
    }
    left -= length;
  }
  return texts.map((text) => (text.length > share ? text.slice(0, share) : text));
}

/** The first distinct words of a text with their positions. */
function firstWords(text: string, limit: number): Map<string, number> {
  const words = new Map<string, number>();
  for (const word of wordsOf(text)) {
    if (words.size >= limit) break;
    if (!words.has(word)) words.set(word, words.size);
  }
  return words;
}

function* wordsOf(text: string): Generator<string> {
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) yield word;
}

/** Sorted by key. */
export function byKey<Entry extends { key: string }>(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** A value as text for the search. */
export function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
