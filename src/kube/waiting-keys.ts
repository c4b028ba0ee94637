import { PRIORITY, type Priority } from './ready-keys.ts';

/** A key that becomes ready at a time of the monotonic clock. */
export interface WaitingKey {
  readonly key: string;
  readyAt: number;
  priority: Priority;
}

/** Keys by the time they become ready: a binary heap that knows where each key stands, so that none stands there twice. */
export class WaitingKeys {
  readonly #heap: WaitingKey[] = [];
  readonly #places = new Map<string, number>();

  get size(): number {
    return this.#heap.length;
  }

  /** Keeps the earlier time and the higher priority when the key waits already. */
  add(key: string, readyAt: number, priority: Priority): void {
    const place = this.#places.get(key);
    const known = place === undefined ? undefined : this.#heap[place];
    if (place === undefined || known === undefined) {
      this.#heap.push({ key, readyAt, priority });
      this.#rise(this.#heap.length - 1);
      return;
    }
    if (priority === PRIORITY.change) known.priority = priority;
    if (readyAt < known.readyAt) {
      known.readyAt = readyAt;
      this.#rise(place);
    }
  }

  /** The key that is ready first. */
  first(): WaitingKey | undefined {
    return this.#heap[0];
  }

  /** Takes the key that is ready first, when that is not after `now`. */
  takeReady(now: number): WaitingKey | undefined {
    const first = this.#heap[0];
    const last = this.#heap.at(-1);
    if (first === undefined || last === undefined || first.readyAt > now) return undefined;
    this.#heap.pop();
    this.#places.delete(first.key);
    if (last !== first) {
      this.#heap[0] = last;
      this.#sink(0);
    }
    return first;
  }

  clear(): void {
    this.#heap.length = 0;
    this.#places.clear();
  }

  #readyAt(place: number): number {
    return this.#heap[place]?.readyAt ?? Number.POSITIVE_INFINITY;
  }

  #rise(from: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (this.#readyAt(parent) <= this.#readyAt(place)) break;
      this.#swap(parent, place);
      place = parent;
    }
    this.#note(place);
  }

  #sink(from: number): void {
    let place = from;
    for (;;) {
      const left = 2 * place + 1;
      const child = this.#readyAt(left + 1) < this.#readyAt(left) ? left + 1 : left;
      if (child >= this.#heap.length || this.#readyAt(place) <= this.#readyAt(child)) break;
      this.#swap(place, child);
      place = child;
    }
    this.#note(place);
  }

  #swap(one: number, other: number): void {
    const first = this.#heap[one];
    const second = this.#heap[other];
    if (first === undefined || second === undefined) return;
    this.#heap[one] = second;
    this.#heap[other] = first;
    this.#note(one);
    this.#note(other);
  }

  #note(place: number): void {
    const entry = this.#heap[place];
    if (entry !== undefined) this.#places.set(entry.key, place);
  }
}
