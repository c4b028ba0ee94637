import { type Counts, countsOf } from '../ledger/account.ts';
import { type Block, eachHeld, type Held, heldOf, hourOf, NOTHING_HELD, type SettledPart } from './ledger-document.ts';

/** What one gateway has leased of one account for one hour, and what it did with it. Holds no more than arithmetic. */
export class Purse {
  readonly time: number;
  readonly hour: number;
  #epoch: string;
  #held: Held = NOTHING_HELD;
  #reserved: Held = NOTHING_HELD;
  #spent: Counts = countsOf({});

  constructor(block: Block, epoch: string) {
    this.time = block.time;
    this.hour = hourOf(block.time);
    this.#epoch = epoch;
  }

  /** Leased, and neither reserved nor spent. Below zero when an answer cost more than was reserved for it. */
  available(): Held {
    const spent = heldOf(this.#spent);
    return eachHeld((key) => this.#held[key] - this.#reserved[key] - spent[key]);
  }

  /** True when the amount was there and is reserved now. */
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
    this.#held = eachHeld((key) => this.#held[key] + block[key]);
  }

  /** Settled and not told to the shared counters. */
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
    return !this.hasPending && empty(this.#held) && empty(this.#reserved);
  }

  /** Takes out what the next change tells the shared counters: all that is settled, and what lies unused when nobody needs it. */
  takeOut(unused: boolean): SettledPart {
    const spent = this.#spent;
    const used = heldOf(spent);
    const available = this.available();
    const released = eachHeld((key) =>
      Math.min(this.#held[key], used[key] + (unused ? Math.max(0, available[key]) : 0)),
    );
    this.#held = eachHeld((key) => this.#held[key] - released[key]);
    this.#spent = countsOf({});
    return { epoch: this.#epoch, time: this.time, released, spent };
  }

  /** The change was not made. */
  putBack({ released, spent }: SettledPart): void {
    this.add(released);
    this.#spent = sum(this.#spent, spent);
  }

  /** Counters that were begun anew know of no block of ours: nothing is held, and what is in flight is leased again. */
  belongTo(epoch: string): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#held = NOTHING_HELD;
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
