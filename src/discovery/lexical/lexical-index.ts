import type { DiscoveryEntry } from '../entry.ts';
import { CapabilityGraph } from '../graph/capability-graph.ts';
import { complete, type SearchSteps } from './steps.ts';
import { stemOf, tokenize } from './tokenizer.ts';
import { Vocabulary } from './vocabulary.ts';

/** An entry with its words and their weights. */
export interface IndexedEntry {
  readonly key: string;
  readonly entry: DiscoveryEntry;
  readonly words: ReadonlyMap<string, number>;
  /** The words of its name. */
  readonly name: ReadonlySet<string>;
  /** Sum of the weights. */
  readonly length: number;
  /** Its position in arrays over the index. */
  readonly slot: number;
}

const NAME_WEIGHT = 2;
const TAG_WEIGHT = 2;
const MAX_TAGS = 20;
const MAX_WORDS = 192;
const MAX_STEMS = 20_000;
const POSITION_DIGITS = 10;

/** An inverted index from words to entries. The cost of a change depends only on the changed entry. */
export class LexicalIndex {
  readonly #byKey = new Map<string, IndexedEntry>();
  readonly #byId = new Map<string, IndexedEntry[]>();
  readonly #sharedIds = new Set<string>();
  readonly #weights = new Map<string, Map<number, number>>();
  readonly #named = new Map<string, Set<number>>();
  readonly #slots: (IndexedEntry | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  readonly #stems = new Map<string, string>();
  #changes = 0;
  readonly vocabulary = new Vocabulary();
  readonly graph = new CapabilityGraph();

  /** Of entries with one ID, the first in the list precedes the others: keys are compared as text, so positions have one length. */
  static of(entries: readonly DiscoveryEntry[]): LexicalIndex {
    return complete(LexicalIndex.stepsOf(entries));
  }

  /** The same with a step for each entry. */
  static *stepsOf(entries: readonly DiscoveryEntry[]): SearchSteps<LexicalIndex> {
    const index = new LexicalIndex();
    for (const [position, entry] of entries.entries()) {
      index.set(String(position).padStart(POSITION_DIGITS, '0'), entry);
      yield;
    }
    return index;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** The entries by slot; a free slot is undefined. */
  get slots(): readonly (IndexedEntry | undefined)[] {
    return this.#slots;
  }

  /** The number of changes so far. */
  get changes(): number {
    return this.#changes;
  }

  *entries(): Generator<DiscoveryEntry> {
    for (const { entry } of this.#byKey.values()) yield entry;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** The IDs that several entries have. */
  get sharedIds(): ReadonlySet<string> {
    return this.#sharedIds;
  }

  get ids(): Iterable<string> {
    return this.#byId.keys();
  }

  withId(id: string): readonly IndexedEntry[] {
    return this.#byId.get(id) ?? [];
  }

  set(key: string, entry: DiscoveryEntry): void {
    this.delete(key);
    this.#changes += 1;
    const slot = this.#freeSlots.pop() ?? this.#slots.length;
    const indexed = { key, entry, slot, ...readWords(entry, (word) => this.#stemOf(word)) };
    this.#byKey.set(key, indexed);
    this.#slots[slot] = indexed;
    const others = this.#byId.get(entry.id);
    if (others === undefined) this.#byId.set(entry.id, [indexed]);
    else {
      others.push(indexed);
      this.#sharedIds.add(entry.id);
    }
    this.graph.set(key, entry);
    for (const [word, weight] of indexed.words) {
      const weights = this.#weights.get(word);
      if (weights !== undefined) weights.set(slot, weight);
      else {
        this.#weights.set(word, new Map([[slot, weight]]));
        this.vocabulary.add(word);
      }
    }
    for (const word of indexed.name) {
      const named = this.#named.get(word);
      if (named === undefined) this.#named.set(word, new Set([slot]));
      else named.add(slot);
    }
  }

  delete(key: string): void {
    const indexed = this.#byKey.get(key);
    if (indexed === undefined) return;
    this.#changes += 1;
    this.#byKey.delete(key);
    this.graph.delete(key);
    this.#slots[indexed.slot] = undefined;
    this.#freeSlots.push(indexed.slot);
    this.#forgetId(indexed);
    for (const word of indexed.words.keys()) {
      if (removeFrom(this.#weights, word, indexed.slot)) this.vocabulary.delete(word);
    }
    for (const word of indexed.name) removeFrom(this.#named, word, indexed.slot);
  }

  #forgetId(indexed: IndexedEntry): void {
    const { id } = indexed.entry;
    const left = this.withId(id).filter((other) => other !== indexed);
    if (left.length === 0) this.#byId.delete(id);
    else this.#byId.set(id, left);
    if (left.length < 2) this.#sharedIds.delete(id);
  }

  /** The slots of the entries with the word, and its weight in each. */
  weightsOf(word: string): ReadonlyMap<number, number> | undefined {
    return this.#weights.get(word);
  }

  /** The slots of the entries with the word in their name. */
  namedWith(word: string): ReadonlySet<number> | undefined {
    return this.#named.get(word);
  }

  /** Stems of words that many entries have are computed once. */
  #stemOf(word: string): string {
    const known = this.#stems.get(word);
    if (known !== undefined) return known;
    if (this.#stems.size >= MAX_STEMS) this.#stems.clear();
    const stem = stemOf(word);
    this.#stems.set(word, stem);
    return stem;
  }
}

function readWords(
  entry: DiscoveryEntry,
  stem: (word: string) => string,
): Pick<IndexedEntry, 'words' | 'name' | 'length'> {
  const words = new Map<string, number>();
  const count = (found: readonly string[], weight: number): void => {
    for (const word of found) {
      const before = words.get(word);
      if (before === undefined && words.size >= MAX_WORDS) continue;
      words.set(word, (before ?? 0) + weight);
    }
  };
  const name = tokenize(entry.name, stem);
  count(name, NAME_WEIGHT);
  count(tokenize(entry.displayName ?? '', stem), 1);
  for (const tag of entry.tags.slice(0, MAX_TAGS)) count(tokenize(tag, stem), TAG_WEIGHT);
  count(tokenize(entry.category, stem), 1);
  count(tokenize(entry.description, stem), 1);
  count(tokenize(entry.parameters ?? '', stem), 1);
  return { words, name: new Set(name), length: [...words.values()].reduce((sum, weight) => sum + weight, 0) };
}

/** What the maps by word have in common. */
interface Slots {
  readonly size: number;
  delete(slot: number): boolean;
}

/** Returns true when no entry has the word afterwards. */
function removeFrom<S extends Slots>(words: Map<string, S>, word: string, slot: number): boolean {
  const slots = words.get(word);
  slots?.delete(slot);
  return slots?.size === 0 && words.delete(word);
}
