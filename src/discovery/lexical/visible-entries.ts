import type { DiscoveryQuery } from '../port.ts';
import type { Link } from '../graph/capability-graph.ts';
import { compareText } from './compare-text.ts';
import type { IndexedEntry, LexicalIndex } from './lexical-index.ts';
import type { DiscoveryEntry } from '../entry.ts';

export interface SearchScope {
  /** In lookup order: for entries with the same id, the earlier index wins. */
  indexes: readonly LexicalIndex[];
  /** Whether the agent may see the entry. */
  permits: (entry: DiscoveryEntry) => boolean;
}

/**
 * The entries that an agent may see and the filters of a query keep, by position. It is computed for all entries whatever the words of the
 * query are, so the work for a query does not tell whether a hidden entry has its words.
 */
export class VisibleEntries {
  readonly entries: readonly (IndexedEntry | undefined)[];
  readonly count: number;
  /** The length of each entry as a fraction of the average one; 0 where no entry is visible. */
  readonly lengths: Float64Array;
  readonly #indexes: { index: LexicalIndex; offset: number }[] = [];
  readonly #byId = new Map<string, IndexedEntry>();

  constructor({ indexes, permits }: SearchScope, query: Pick<DiscoveryQuery, 'kind' | 'category'>) {
    const entries: (IndexedEntry | undefined)[] = [];
    for (const index of indexes) {
      const offset = entries.length;
      this.#indexes.push({ index, offset });
      for (const indexed of index.slots) {
        entries.push(undefined);
        if (indexed === undefined || !permits(indexed.entry)) continue;
        const other = this.#byId.get(indexed.entry.id);
        if (other !== undefined && !replaces(indexed, other, index)) continue;
        if (other !== undefined) entries[offset + other.slot] = undefined;
        this.#byId.set(indexed.entry.id, indexed);
        entries[offset + indexed.slot] = indexed;
      }
    }
    const isKept = keeps(query);
    const kept = entries.map((indexed) => (indexed !== undefined && isKept(indexed) ? indexed : undefined));
    const lengths = kept.flatMap((indexed) => indexed?.length ?? []);
    const average = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    this.entries = kept;
    for (const [id, indexed] of this.#byId) if (!isKept(indexed)) this.#byId.delete(id);
    this.count = lengths.length;
    this.lengths = Float64Array.from(kept, (indexed) => (indexed === undefined ? 0 : indexed.length / average));
  }

  /** The visible entry with the ID. */
  byId(id: string): DiscoveryEntry | undefined {
    return this.#byId.get(id)?.entry;
  }

  /** The links between visible entries that visible entries declare, of the entry with the ID. */
  linksOf(id: string): Link[] {
    return this.#indexes
      .flatMap(({ index }) => index.graph.linksOf(id, (link) => this.#isVisible(id, link, index)))
      .sort((a, b) => compareText(`${a.other} ${a.type} ${a.key}`, `${b.other} ${b.type} ${b.key}`));
  }

  #isVisible(id: string, { other, key }: Link, index: LexicalIndex): boolean {
    const ends = [this.#byId.get(id), this.#byId.get(other)];
    if (ends.includes(undefined)) return false;
    return ends.some((end) => end?.key === key && index.slots[end.slot] === end);
  }

  /** Calls `visit` for each visible entry with the word, with the weight of the word in it. */
  forEachWith(word: string, visit: (position: number, weight: number) => void): void {
    for (const { index, offset } of this.#indexes) {
      index.weightsOf(word)?.forEach((weight, slot) => {
        if (this.lengths[offset + slot] !== 0) visit(offset + slot, weight);
      });
    }
  }

  /** Calls `visit` for each visible entry with the word in its name, with the fraction of the name that the word is. */
  forEachNamed(word: string, visit: (position: number, fraction: number) => void): void {
    for (const { index, offset } of this.#indexes) {
      for (const slot of index.namedWith(word) ?? []) {
        const indexed = this.entries[offset + slot];
        if (indexed !== undefined) visit(offset + slot, 1 / indexed.name.size);
      }
    }
  }

  /** The number of visible entries with the word. */
  countWith(word: string): number {
    let count = 0;
    this.forEachWith(word, () => {
      count += 1;
    });
    return count;
  }

  /** The words of the indexes, visible or not, that a word may be a misspelling of; nearest first. */
  near(word: string): string[] {
    return [...new Set(this.#indexes.flatMap(({ index }) => index.vocabulary.near(word)))];
  }
}

/** Within one index, the agent's own entry precedes one of all agents; other entries with one id are ordered by key, the same at every replica. */
function replaces(indexed: IndexedEntry, other: IndexedEntry, index: LexicalIndex): boolean {
  if (index.slots[other.slot] !== other) return false;
  const [own, otherOwn] = [indexed, other].map(({ entry }) => entry.agent !== undefined);
  return own === otherOwn ? indexed.key < other.key : own === true;
}

/** Whether the entry passes the filters and has words. */
function keeps({ kind, category }: Pick<DiscoveryQuery, 'kind' | 'category'>): (indexed: IndexedEntry) => boolean {
  const [wantedKind, wantedCategory] = [kind?.toLowerCase(), category?.toLowerCase()];
  return ({ entry, length }) =>
    length > 0 &&
    (wantedKind === undefined || entry.kind === wantedKind) &&
    (wantedCategory === undefined || entry.category.toLowerCase() === wantedCategory);
}
