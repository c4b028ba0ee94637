import type { DiscoveryEntry } from './entry.ts';
import { wordsOf } from './words.ts';

/** An entry with its words and how much each of them counts. */
export interface IndexedEntry {
  readonly entry: DiscoveryEntry;
  readonly words: ReadonlyMap<string, number>;
  /** Sum of what its words count. */
  readonly length: number;
}

const NAME_COUNTS = 3;
const TAG_COUNTS = 2;
const MOST_TAGS = 20;

/** Entries by their words. Changing one costs its own words, whatever else there is. */
export class LexicalIndex {
  readonly #byKey = new Map<string, IndexedEntry>();
  readonly #byWord = new Map<string, Set<IndexedEntry>>();

  static of(entries: readonly DiscoveryEntry[]): LexicalIndex {
    const index = new LexicalIndex();
    entries.forEach((entry, position) => index.set(String(position), entry));
    return index;
  }

  get size(): number {
    return this.#byKey.size;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  set(key: string, entry: DiscoveryEntry): void {
    this.delete(key);
    const words = countedWords(entry);
    const indexed = { entry, words, length: [...words.values()].reduce((sum, count) => sum + count, 0) };
    this.#byKey.set(key, indexed);
    for (const word of words.keys()) {
      const entries = this.#byWord.get(word);
      if (entries === undefined) this.#byWord.set(word, new Set([indexed]));
      else entries.add(indexed);
    }
  }

  delete(key: string): void {
    const indexed = this.#byKey.get(key);
    if (indexed === undefined) return;
    this.#byKey.delete(key);
    for (const word of indexed.words.keys()) {
      const entries = this.#byWord.get(word);
      entries?.delete(indexed);
      if (entries?.size === 0) this.#byWord.delete(word);
    }
  }

  withWord(word: string): Iterable<IndexedEntry> {
    return this.#byWord.get(word) ?? [];
  }
}

function countedWords({ id, name, description, tags }: DiscoveryEntry): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (text: string, much: number): void => {
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + much);
  };
  count(id, 1);
  count(name, NAME_COUNTS);
  for (const tag of tags.slice(0, MOST_TAGS)) count(tag, TAG_COUNTS);
  count(description, 1);
  return counts;
}
