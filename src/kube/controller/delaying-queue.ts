import { PRIORITY, type Priority } from './priority-fifo.ts';

/** A key that becomes ready at a monotonic time, in milliseconds. */
export interface DelayedKey {
  readonly key: string;
  readyAt: number;
  priority: Priority;
}

/** Keys by the time at which they become ready: a binary heap with an index of positions, so that each key is in it at most once. */
export class DelayingQueue {
  readonly #heap: DelayedKey[] = [];
  readonly #positions = new Map<string, number>();

  get size(): number {
    return this.#heap.length;
  }

  /** Adds the key. A key that is already in the queue keeps the earlier time and the higher priority. */
  add(key: string, readyAt: number, priority: Priority): void {
    const position = this.#positions.get(key);
    const known = position === undefined ? undefined : this.#heap[position];
    if (position === undefined || known === undefined) {
      this.#heap.push({ key, readyAt, priority });
      this.#rise(this.#heap.length - 1);
      return;
    }
    if (priority === PRIORITY.normal) known.priority = priority;
    if (readyAt < known.readyAt) {
      known.readyAt = readyAt;
      this.#rise(position);
    }
  }

  /** The key with the earliest time. */
  peek(): DelayedKey | undefined {
    return this.#heap[0];
  }

  /** Removes and returns the key with the earliest time; undefined when that time is after `now`. */
  popReady(now: number): DelayedKey | undefined {
    const first = this.#heap[0];
    const last = this.#heap.at(-1);
    if (first === undefined || last === undefined || first.readyAt > now) return undefined;
    this.#heap.pop();
    this.#positions.delete(first.key);
    if (last !== first) {
      this.#heap[0] = last;
      this.#sink(0);
    }
    return first;
  }

  clear(): void {
    this.#heap.length = 0;
    this.#positions.clear();
  }

  #readyAt(position: number): number {
    return this.#heap[position]?.readyAt ?? Number.POSITIVE_INFINITY;
  }

  #rise(from: number): void {
    let position = from;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (this.#readyAt(parent) <= this.#readyAt(position)) break;
      this.#swap(parent, position);
      position = parent;
    }
    this.#recordPosition(position);
  }

  #sink(from: number): void {
    let position = from;
    for (;;) {
      const left = 2 * position + 1;
      const child = this.#readyAt(left + 1) < this.#readyAt(left) ? left + 1 : left;
      if (child >= this.#heap.length || this.#readyAt(position) <= this.#readyAt(child)) break;
      this.#swap(position, child);
      position = child;
    }
    this.#recordPosition(position);
  }

  #swap(a: number, b: number): void {
    const first = this.#heap[a];
    const second = this.#heap[b];
    if (first === undefined || second === undefined) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
    this.#recordPosition(a);
    this.#recordPosition(b);
  }

  #recordPosition(position: number): void {
    const entry = this.#heap[position];
    if (entry !== undefined) this.#positions.set(entry.key, position);
  }
}
