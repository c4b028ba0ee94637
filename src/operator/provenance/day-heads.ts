import type { StreamHead } from '../../audit/stream-chain.ts';

const DAY_MS = 24 * 3_600_000;

/** A head that is not signed yet, with the time of its last record. */
export interface DayHead {
  readonly head: StreamHead;
  readonly recordedAt: string;
}

/**
 * The heads to sign after the last signed one: the last head of each day of records, and the newest. Without those of the days, one head
 * would cover records of many days, and nothing would tell their expiry from an early removal.
 */
export class DayHeads {
  readonly #after: number;
  readonly #ended: DayHead[] = [];
  #current: (DayHead & { day: number }) | undefined;

  constructor(signed: StreamHead | undefined) {
    this.#after = signed?.sequence ?? -1;
  }

  /** A day that is earlier than the one before counts as the same, so the heads are never more than the days. */
  add(head: StreamHead, time: Date | undefined): void {
    if (head.sequence <= this.#after || time === undefined) return;
    const current = this.#current;
    const day = Math.max(Math.floor(time.getTime() / DAY_MS), current?.day ?? 0);
    if (current !== undefined && day > current.day) this.#ended.push(current);
    this.#current = { head, day, recordedAt: time.toISOString() };
  }

  heads(): DayHead[] {
    return this.#current === undefined ? this.#ended : [...this.#ended, this.#current];
  }
}
