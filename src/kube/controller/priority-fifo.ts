import { PriorityTurns } from '../../lib/async/priority-turns.ts';

/** The priority of a key: watch events come before the initial list and resyncs. */
export const PRIORITY = { normal: 0, resync: -100 } as const;

export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** Of so many keys that are taken while resyncs wait, one is a resync, so that a flood of changes does not stop the initial list. */
export const RESYNC_EVERY = 8;

/** A FIFO queue with removal from the middle. */
class Fifo {
  readonly keys = new Set<string>();
  // The iterator is reused: a new one would iterate again over the slots of all removed keys.
  #next = this.keys.values();

  take(): string | undefined {
    if (this.keys.size === 0) return undefined;
    let step = this.#next.next();
    if (step.done === true) {
      this.#next = this.keys.values();
      step = this.#next.next();
    }
    if (step.done === true) return undefined;
    this.keys.delete(step.value);
    return step.value;
  }
}

/** The keys of one namespace: those of higher rank first, without a rank that waits forever. */
class RankedFifo {
  readonly #ranks = new Map<number, Fifo>();
  readonly #turns = new PriorityTurns();

  get isEmpty(): boolean {
    return this.#ranks.size === 0;
  }

  push(key: string, rank: number): void {
    const own = this.#ranks.get(rank) ?? new Fifo();
    own.keys.add(key);
    this.#ranks.set(rank, own);
  }

  delete(key: string): boolean {
    for (const [rank, { keys }] of this.#ranks) {
      if (!keys.delete(key)) continue;
      if (keys.size === 0) this.#ranks.delete(rank);
      return true;
    }
    return false;
  }

  take(): string | undefined {
    const waiting = [...this.#ranks.keys()];
    const [rank] = waiting.length > 1 ? this.#turns.order(waiting) : waiting;
    if (rank === undefined) return undefined;
    this.#turns.taken(rank, waiting);
    const own = this.#ranks.get(rank);
    const key = own?.take();
    if (own?.keys.size === 0) this.#ranks.delete(rank);
    return key;
  }
}

/** The keys of each namespace. The namespaces take turns, so thousands of keys of one delay a key of another by one key. */
class FairFifo {
  readonly #namespaces = new Map<string, RankedFifo>();
  /** Namespaces with keys, in the order of their turns. */
  readonly #turns = new Fifo();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The key is in no queue yet. */
  push(key: string, rank: number): void {
    const namespace = namespaceOf(key);
    const own = this.#namespaces.get(namespace) ?? new RankedFifo();
    own.push(key, rank);
    this.#namespaces.set(namespace, own);
    this.#turns.keys.add(namespace);
    this.#size += 1;
  }

  delete(key: string): boolean {
    const namespace = namespaceOf(key);
    const own = this.#namespaces.get(namespace);
    if (own?.delete(key) !== true) return false;
    this.#size -= 1;
    if (own.isEmpty) {
      this.#namespaces.delete(namespace);
      this.#turns.keys.delete(namespace);
    }
    return true;
  }

  take(): string | undefined {
    const namespace = this.#turns.take();
    const own = namespace === undefined ? undefined : this.#namespaces.get(namespace);
    const key = own?.take();
    if (namespace === undefined || own === undefined || key === undefined) return undefined;
    this.#size -= 1;
    if (own.isEmpty) this.#namespaces.delete(namespace);
    else this.#turns.keys.add(namespace);
    return key;
  }
}

/** Keys are `namespace/name`. Those of objects without a namespace share one queue. */
function namespaceOf(key: string): string {
  const slash = key.indexOf('/');
  return slash === -1 ? '' : key.slice(0, slash);
}

/** The rank of a key among the keys of its namespace: a higher one is taken first. */
export type RankOf = (key: string) => number;

/**
 * The keys that are ready for a worker: by priority, then by turns of their namespaces, then by the rank of the key within its namespace,
 * then in the order in which they were added.
 */
export class PriorityFifo {
  readonly #rankOf: RankOf;
  readonly #normal = new FairFifo();
  readonly #resyncs = new FairFifo();
  /** Keys of normal priority that were taken since the last resync. */
  #sinceResync = 0;

  constructor(rankOf: RankOf = () => 0) {
    this.#rankOf = rankOf;
  }

  get size(): number {
    return this.#normal.size + this.#resyncs.size;
  }

  /** The number of queued keys of one priority. */
  depth(priority: Priority): number {
    return this.#of(priority).size;
  }

  push(key: string, priority: Priority): void {
    this.#of(priority).push(key, this.#rankOf(key));
  }

  /** Moves a key of low priority to the end of the keys of normal priority. */
  raise(key: string): void {
    if (this.#resyncs.delete(key)) this.#normal.push(key, this.#rankOf(key));
  }

  take(): string | undefined {
    const isResyncDue = this.#resyncs.size > 0 && this.#sinceResync >= RESYNC_EVERY - 1;
    const normal = isResyncDue ? undefined : this.#normal.take();
    this.#sinceResync = normal === undefined || this.#resyncs.size === 0 ? 0 : this.#sinceResync + 1;
    return normal ?? this.#resyncs.take();
  }

  #of(priority: Priority): FairFifo {
    return priority === PRIORITY.normal ? this.#normal : this.#resyncs;
  }
}
