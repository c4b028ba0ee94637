import { type Counts, countsOf } from '../ledger/account.ts';
import { type Block, eachHeld, type Held, heldOf, hourOf, NOTHING_HELD, type SettledPart } from './ledger-document.ts';

/**
 * The allocation of one account to one gateway for one hour: `available = allocated - reserved - spent`. Arithmetic only, no I/O.
 */
export class Purse {
  readonly time: number;
  readonly hour: number;
  #epoch: string;
  #allocated: Held = NOTHING_HELD;
  #reserved: Held = NOTHING_HELD;
  #spent: Counts = countsOf({});

  constructor(block: Block, epoch: string) {
    this.time = block.time;
    this.hour = hourOf(block.time);
    this.#epoch = epoch;
  }

  /** Allocated, and neither reserved nor spent. Negative when a call cost more than it had reserved. */
  available(): Held {
    const spent = heldOf(this.#spent);
    return eachHeld((key) => this.#allocated[key] - this.#reserved[key] - spent[key]);
  }

  /** Reserves the amount if it is available; false otherwise. */
  reserve(amount: Held): boolean {
    const available = this.available();
    const short = (key: keyof Held): boolean => amount[key] > 0 && amount[key] > available[key];
    if (short('tokens') || short('costMicros') || short('networkBytes')) return false;
    this.#reserved = eachHeld((key) => this.#reserved[key] + amount[key]);
    return true;
  }

  settle(amount: Held, used: Counts): void {
    this.#reserved = eachHeld((key) => this.#reserved[key] - amount[key]);
    this.#spent = sum(this.#spent, used);
  }

  add(block: Held): void {
    this.#allocated = eachHeld((key) => this.#allocated[key] + block[key]);
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
    const empty = (held: Held): boolean => Object.values(held).every((amount) => amount === 0);
    return !this.hasPending && empty(this.#allocated) && empty(this.#reserved);
  }

  /** Removes and returns the part for the next write: all committed spend and, with `unused`, the available amounts. */
  takeOut(unused: boolean): SettledPart {
    const spent = this.#spent;
    const used = heldOf(spent);
    const available = this.available();
    const released = eachHeld((key) =>
      Math.min(this.#allocated[key], used[key] + (unused ? Math.max(0, available[key]) : 0)),
    );
    this.#allocated = eachHeld((key) => this.#allocated[key] - released[key]);
    this.#spent = countsOf({});
    return { epoch: this.#epoch, time: this.time, released, spent };
  }

  /** Reverts `drain` when the write failed. */
  putBack({ released, spent }: SettledPart): void {
    this.add(released);
    this.#spent = sum(this.#spent, spent);
  }

  /** A record with another epoch is new and does not contain this allocation: drops it, so that reservations in flight are allocated again. */
  belongTo(epoch: string): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#allocated = NOTHING_HELD;
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
