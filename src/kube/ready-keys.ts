/** Why a key is worked on: a change of the world comes before a look at everything. */
export const PRIORITY = { change: 0, resync: -100 } as const;

export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** First in, first out, with removal from the middle. */
class Fifo {
  readonly keys = new Set<string>();
  // One iterator is kept: a fresh one would walk again over the places of all that was taken before.
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

/** The keys a worker may take, changes before resyncs, each kind in the order it came. */
export class ReadyKeys {
  readonly #changes = new Fifo();
  readonly #resyncs = new Fifo();

  get size(): number {
    return this.#changes.keys.size + this.#resyncs.keys.size;
  }

  /** How many keys of one priority wait. */
  depth(priority: Priority): number {
    return this.#of(priority).keys.size;
  }

  push(key: string, priority: Priority): void {
    this.#of(priority).keys.add(key);
  }

  /** Moves a key that waits with the low priority behind those of the normal one. */
  raise(key: string): void {
    if (this.#resyncs.keys.delete(key)) this.#changes.keys.add(key);
  }

  take(): string | undefined {
    return this.#changes.take() ?? this.#resyncs.take();
  }

  #of(priority: Priority): Fifo {
    return priority === PRIORITY.change ? this.#changes : this.#resyncs;
  }
}
