import { type Counts, toCounts } from '../../ledger/account.ts';
import {
  type Allocation,
  mapAmounts,
  type AllocationAmounts,
  amountsOf,
  hourStart,
  ZERO_AMOUNTS,
  type CommittedPart,
} from './account-record.ts';

/**
 * The allocation of one account to one gateway for one hour: `available = allocated - reserved - spent`. Arithmetic only, no I/O.
 */
export class HourlyAllocation {
  readonly time: number;
  readonly hour: number;
  #epoch: string;
  #allocated: AllocationAmounts = ZERO_AMOUNTS;
  #reserved: AllocationAmounts = ZERO_AMOUNTS;
  #spent: Counts = toCounts({});

  constructor(block: Allocation, epoch: string) {
    this.time = block.time;
    this.hour = hourStart(block.time);
    this.#epoch = epoch;
  }

  /** Allocated, and neither reserved nor spent. Negative when a call cost more than it had reserved. */
  available(): AllocationAmounts {
    const spent = amountsOf(this.#spent);
    return mapAmounts((key) => this.#allocated[key] - this.#reserved[key] - spent[key]);
  }

  /** Reserves the amount if it is available; false otherwise. */
  reserve(amount: AllocationAmounts): boolean {
    const available = this.available();
    const short = (key: keyof AllocationAmounts): boolean => amount[key] > 0 && amount[key] > available[key];
    if (short('tokens') || short('costMicros') || short('networkBytes')) return false;
    this.#reserved = mapAmounts((key) => this.#reserved[key] + amount[key]);
    return true;
  }

  commit(amount: AllocationAmounts, used: Counts): void {
    this.#reserved = mapAmounts((key) => this.#reserved[key] - amount[key]);
    this.#spent = sum(this.#spent, used);
  }

  add(block: AllocationAmounts): void {
    this.#allocated = mapAmounts((key) => this.#allocated[key] + block[key]);
  }

  /** Committed here and not yet written to the shared record. */
  get pending(): Counts {
    return this.#spent;
  }

  get hasPending(): boolean {
    return Object.values(this.#spent).some((amount) => amount > 0);
  }

  get hasUnused(): boolean {
    return Object.values(this.available()).some((amount) => amount > 0);
  }

  get isEmpty(): boolean {
    const empty = (held: AllocationAmounts): boolean => Object.values(held).every((amount) => amount === 0);
    return !this.hasPending && empty(this.#allocated) && empty(this.#reserved);
  }

  /** Removes and returns the part for the next write: all committed spend and, with `unused`, the available amounts. */
  drain(unused: boolean): CommittedPart {
    const spent = this.#spent;
    const used = amountsOf(spent);
    const available = this.available();
    const released = mapAmounts((key) =>
      Math.min(this.#allocated[key], used[key] + (unused ? Math.max(0, available[key]) : 0)),
    );
    this.#allocated = mapAmounts((key) => this.#allocated[key] - released[key]);
    this.#spent = toCounts({});
    return { epoch: this.#epoch, time: this.time, released, spent };
  }

  /** Reverts `drain` when the write failed. */
  restore({ released, spent }: CommittedPart): void {
    this.add(released);
    this.#spent = sum(this.#spent, spent);
  }

  /** A record with another epoch is new and does not contain this allocation: drops it, so that reservations in flight are allocated again. */
  switchEpoch(epoch: string): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#allocated = ZERO_AMOUNTS;
  }
}

function sum(left: Counts, right: Counts): Counts {
  return {
    inputTokens: left.inputTokens + right.inputTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    costMicros: left.costMicros + right.costMicros,
    toolCalls: left.toolCalls + right.toolCalls,
    networkBytes: left.networkBytes + right.networkBytes,
  };
}
