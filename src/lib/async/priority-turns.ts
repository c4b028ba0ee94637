/** Of so many turns in a row that a waiting rank is passed over, it gets the next one. */
const MAX_PASSED = 8;

/**
 * The order of turns of work with ranks: the highest rank first, but a rank that waits is passed over at most eight times in a row for
 * each rank above it, so no rank waits forever. Ranks are whole numbers; equal ones take turns as their owner decides.
 */
export class PriorityTurns {
  /** By rank: turns that others had while it waited. */
  readonly #passed = new Map<number, number>();

  /** The waiting ranks, each once, in the order in which they are to be tried. */
  order(waiting: Iterable<number>): number[] {
    const overdue = (rank: number): number => {
      const passed = this.#passed.get(rank) ?? 0;
      return passed >= MAX_PASSED ? passed : 0;
    };
    return [...new Set(waiting)].sort((one, other) => overdue(other) - overdue(one) || other - one);
  }

  /** Work of this rank began while these ranks waited. */
  taken(rank: number, waiting: Iterable<number>): void {
    const others = new Set(waiting);
    // A rank that does not wait any more starts again.
    for (const known of this.#passed.keys()) if (!others.has(known)) this.#passed.delete(known);
    for (const other of others) this.#passed.set(other, (this.#passed.get(other) ?? 0) + 1);
    this.#passed.delete(rank);
  }
}
