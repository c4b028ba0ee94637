/** The priority of a key: watch events come before the initial list and resyncs. */
export const PRIORITY = { normal: 0, resync: -100 } as const;

export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

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

/** The keys that are ready for a worker: by priority, then in the order in which they were added. */
export class PriorityFifo {
  readonly #normal = new Fifo();
  readonly #resyncs = new Fifo();

  get size(): number {
    return this.#normal.keys.size + this.#resyncs.keys.size;
  }

  /** The number of queued keys of one priority. */
  depth(priority: Priority): number {
    return this.#of(priority).keys.size;
  }

  push(key: string, priority: Priority): void {
    this.#of(priority).keys.add(key);
  }

  /** Moves a key of low priority to the end of the keys of normal priority. */
  raise(key: string): void {
    if (this.#resyncs.keys.delete(key)) this.#normal.keys.add(key);
  }

  take(): string | undefined {
    return this.#normal.take() ?? this.#resyncs.take();
  }

  #of(priority: Priority): Fifo {
    return priority === PRIORITY.normal ? this.#normal : this.#resyncs;
  }
}
