import type { DiscoveryQuery } from '../port.ts';
import { type Link, LINK_WEIGHTS } from '../graph/capability-graph.ts';
import { compareText } from './compare-text.ts';
import type { IndexedEntry, LexicalIndex } from './lexical-index.ts';
import type { SearchSteps } from './steps.ts';
import type { DiscoveryEntry } from '../entry.ts';

export interface SearchScope {
  /** In lookup order: for entries with the same id, the earlier index wins. */
  indexes: readonly LexicalIndex[];
  /** Whether the agent may see the entry. */
  permits: (entry: DiscoveryEntry) => boolean;
  /** Capabilities that the agent uses together. */
  usedTogether?: readonly UsedTogetherLink[];
}

/** The IDs of two capabilities that one agent uses together, and how often, from 0 to 1. */
export interface UsedTogetherLink {
  ids: readonly [string, string];
  weight: number;
}

/** An index, and the position of its first slot. */
interface PlacedIndex {
  index: LexicalIndex;
  offset: number;
}

/**
 * The entries that an agent may see and the filters of a query keep, by position. It is computed for all entries whatever the words of the
 * query are, so the work for a query does not tell whether a hidden entry has its words. The indexes may change afterwards: these entries
 * stay the same, with the words that they have now.
 */
export class VisibleEntries {
  readonly entries: readonly (IndexedEntry | undefined)[];
  readonly count: number;
  /** The length of each entry as a fraction of the average one; 0 where no entry is visible. */
  readonly lengths: Float64Array;
  readonly #indexes: readonly PlacedIndex[];
  readonly #usedTogether: readonly UsedTogetherLink[];
  readonly #removed: RemovedEntries;
  #byId: Map<string, IndexedEntry> | undefined;

  constructor({ indexes, permits, usedTogether = [] }: SearchScope, query: Pick<DiscoveryQuery, 'kind' | 'category'>) {
    this.#indexes = placed(indexes);
    this.#usedTogether = usedTogether;
    const entries = permitted(this.#indexes, permits);
    hideRepeated(entries, this.#indexes);
    const isKept = keeps(query);
    const lengths = new Float64Array(entries.length);
    let count = 0;
    let sum = 0;
    for (let position = 0; position < entries.length; position += 1) {
      const indexed = entries[position];
      if (indexed === undefined) continue;
      if (!isKept(indexed)) {
        entries[position] = undefined;
        continue;
      }
      lengths[position] = indexed.length;
      count += 1;
      sum += indexed.length;
    }
    const average = sum / count;
    for (let position = 0; position < lengths.length; position += 1) {
      const length = lengths[position] ?? 0;
      if (length !== 0) lengths[position] = length / average;
    }
    this.entries = entries;
    this.count = count;
    this.lengths = lengths;
    this.#removed = new RemovedEntries(this.#indexes, entries);
  }

  /** The visible entry with the ID. */
  byId(id: string): DiscoveryEntry | undefined {
    return this.#withId(id)?.entry;
  }

  #withId(id: string): IndexedEntry | undefined {
    // One visible entry has the ID.
    this.#byId ??= new Map(
      this.entries.flatMap((indexed) => (indexed === undefined ? [] : [[indexed.entry.id, indexed]])),
    );
    return this.#byId.get(id);
  }

  /** The links of the entry with the ID between visible entries: those that visible entries declare, and those by use. */
  linksOf(id: string): Link[] {
    const declared = this.#indexes.flatMap(({ index }) =>
      index.graph.linksOf(id, (link) => this.#isVisible(id, link, index)),
    );
    return [...declared, ...this.#linksByUse(id, declared)].sort((a, b) =>
      compareText(`${a.other} ${a.type} ${a.key}`, `${b.other} ${b.type} ${b.key}`),
    );
  }

  /** A declared link to the same capability goes before. */
  #linksByUse(id: string, declared: readonly Link[]): Link[] {
    return this.#usedTogether.flatMap(({ ids, weight }) => {
      const other = ids.includes(id) ? ids.find((end) => end !== id) : undefined;
      if (other === undefined || ids.some((end) => this.#withId(end) === undefined)) return [];
      if (declared.some((link) => link.other === other)) return [];
      return [{ type: 'ComposedWith', other, key: '', isNeeded: false, weight: weight * LINK_WEIGHTS.ComposedWith }];
    });
  }

  #isVisible(id: string, { other, key }: Link, index: LexicalIndex): boolean {
    const ends = [this.#withId(id), this.#withId(other)];
    if (ends.includes(undefined)) return false;
    return ends.some((end) => end?.key === key && index.slots[end.slot] === end);
  }

  /** Calls `visit` for each visible entry with the word, with the weight of the word in it. */
  forEachWith(word: string, visit: (position: number, weight: number) => void): void {
    for (const { index, offset } of this.#indexes) {
      index.weightsOf(word)?.forEach((weight, slot) => {
        const indexed = this.entries[offset + slot];
        if (indexed !== undefined && index.slots[slot] === indexed) visit(offset + slot, weight);
      });
    }
    this.#removed.forEach((position, { words }) => {
      const weight = words.get(word);
      if (weight !== undefined) visit(position, weight);
    });
  }

  /** Calls `visit` for each visible entry with the word in its name, with the fraction of the name that the word is. */
  forEachNamed(word: string, visit: (position: number, fraction: number) => void): void {
    for (const { index, offset } of this.#indexes) {
      index.namedWith(word)?.forEach((slot) => {
        const indexed = this.entries[offset + slot];
        if (indexed !== undefined && index.slots[slot] === indexed) visit(offset + slot, 1 / indexed.name.size);
      });
    }
    this.#removed.forEach((position, { name }) => {
      if (name.has(word)) visit(position, 1 / name.size);
    });
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
  *nearSteps(word: string): SearchSteps<string[]> {
    const near = new Set<string>();
    for (const { index } of this.#indexes) {
      for (const known of yield* index.vocabulary.nearSteps(word)) near.add(known);
    }
    return [...near];
  }
}

/** The visible entries that were changed or deleted since the search began: their index does not have their words any more. */
class RemovedEntries {
  readonly #indexes: readonly PlacedIndex[];
  readonly #entries: readonly (IndexedEntry | undefined)[];
  #changes: number;
  #removed: [number, IndexedEntry][] = [];

  constructor(indexes: readonly PlacedIndex[], entries: readonly (IndexedEntry | undefined)[]) {
    this.#indexes = indexes;
    this.#entries = entries;
    this.#changes = changesOf(indexes);
  }

  forEach(visit: (position: number, indexed: IndexedEntry) => void): void {
    const changes = changesOf(this.#indexes);
    if (changes !== this.#changes) {
      this.#changes = changes;
      this.#removed = this.#indexes.flatMap((placedIndex, at) => this.#removedFrom(placedIndex, this.#endOf(at)));
    }
    for (const [position, indexed] of this.#removed) visit(position, indexed);
  }

  #removedFrom({ index, offset }: PlacedIndex, end: number): [number, IndexedEntry][] {
    const removed: [number, IndexedEntry][] = [];
    for (let position = offset; position < end; position += 1) {
      const indexed = this.#entries[position];
      if (indexed !== undefined && index.slots[position - offset] !== indexed) removed.push([position, indexed]);
    }
    return removed;
  }

  #endOf(at: number): number {
    return this.#indexes[at + 1]?.offset ?? this.#entries.length;
  }
}

function changesOf(indexes: readonly PlacedIndex[]): number {
  return indexes.reduce((sum, { index }) => sum + index.changes, 0);
}

function placed(indexes: readonly LexicalIndex[]): PlacedIndex[] {
  let offset = 0;
  return indexes.map((index) => {
    const own = { index, offset };
    offset += index.slots.length;
    return own;
  });
}

function permitted(indexes: readonly PlacedIndex[], permits: SearchScope['permits']): (IndexedEntry | undefined)[] {
  const entries: (IndexedEntry | undefined)[] = [];
  for (const { index } of indexes) {
    for (const indexed of index.slots) {
      entries.push(indexed !== undefined && permits(indexed.entry) ? indexed : undefined);
    }
  }
  return entries;
}

/** Of the permitted entries with one ID, only the first stays: the one of an earlier index, or the one that precedes the others of its index. */
function hideRepeated(entries: (IndexedEntry | undefined)[], indexes: readonly PlacedIndex[]): void {
  const permittedWith = ({ index, offset }: PlacedIndex, id: string): IndexedEntry[] =>
    index.withId(id).filter((indexed) => entries[offset + indexed.slot] === indexed);
  for (const [position, later] of indexes.entries()) {
    for (const id of later.index.sharedIds) {
      const [, ...others] = permittedWith(later, id).toSorted(ownFirst);
      for (const { slot } of others) entries[later.offset + slot] = undefined;
    }
    for (const earlier of indexes.slice(0, position)) {
      const ids = earlier.index.size < later.index.size ? earlier.index.ids : later.index.ids;
      for (const id of ids) {
        if (permittedWith(earlier, id).length === 0) continue;
        for (const { slot } of permittedWith(later, id)) entries[later.offset + slot] = undefined;
      }
    }
  }
}

/** The agent's own entry precedes one of all agents; other entries with one id are ordered by key, the same at every replica. */
function ownFirst(one: IndexedEntry, other: IndexedEntry): number {
  const [isOwn, isOtherOwn] = [one, other].map(({ entry }) => entry.agent !== undefined);
  return isOwn === isOtherOwn ? compareText(one.key, other.key) : isOwn === true ? -1 : 1;
}

/** Whether the entry passes the filters and has words. */
function keeps({ kind, category }: Pick<DiscoveryQuery, 'kind' | 'category'>): (indexed: IndexedEntry) => boolean {
  if (kind === undefined && category === undefined) return ({ length }) => length > 0;
  const [wantedKind, wantedCategory] = [kind?.toLowerCase(), category?.toLowerCase()];
  return ({ entry, length }) =>
    length > 0 &&
    (wantedKind === undefined || entry.kind === wantedKind) &&
    (wantedCategory === undefined || entry.category.toLowerCase() === wantedCategory);
}
