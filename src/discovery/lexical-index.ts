import type { DiscoveryEntry } from './entry.ts';
import { tokenize } from './tokenizer.ts';

/** An entry with its words and their weights. */
export interface IndexedEntry {
  readonly entry: DiscoveryEntry;
  readonly words: ReadonlyMap<string, number>;
  /** Sum of the weights. */
  readonly length: number;
}

const NAME_WEIGHT = 3;
const TAG_WEIGHT = 2;
const MAX_TAGS = 20;

/** An inverted index from words to entries. The cost of a change depends only on the changed entry. */
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

  entriesWith(word: string): Iterable<IndexedEntry> {
    return this.#byWord.get(word) ?? [];
  }
}

function countedWords({ id, name, description, tags }: DiscoveryEntry): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (text: string, weight: number): void => {
    for (const word of tokenize(text)) counts.set(word, (counts.get(word) ?? 0) + weight);
  };
  count(id, 1);
  count(name, NAME_WEIGHT);
  for (const tag of tags.slice(0, MAX_TAGS)) count(tag, TAG_WEIGHT);
  count(description, 1);
  return counts;
}
