import type { Counts, QuotaLimits } from '../ledger/account.ts';
import type { Denial } from '../ledger/port.ts';
import {
  type Block,
  eachHeld,
  type Held,
  hourOf,
  type LedgerChange,
  NOTHING_HELD,
  type SettledPart,
} from './ledger-document.ts';
import { type CommitDeps, commitChange, type Committed, type Current, type Opening } from './ledger-commit.ts';
import { Purse } from './ledger-purse.ts';

export interface WalletQuotas {
  limits: QuotaLimits;
  prefix: string;
  opening: Opening;
}

interface Prepared {
  change: LedgerChange;
  parts: readonly { purse: Purse; part: SettledPart }[];
  lost: boolean;
}

/** Blocks that came too small because a later hour had begun meanwhile are leased again; more often than that is a defect. */
const MOST_LEASES = 4;

/** One account as one gateway holds it: blocks leased from the shared counters, given out here without asking anybody. */
export class Wallet {
  readonly #deps: CommitDeps;
  readonly #key: string;
  readonly #writer: string;
  #purses: Purse[] = [];
  #known: Current | undefined;
  readonly #nextSeq: () => number;
  #working = 0;
  #leasing = 0;
  /** A change whose answer was lost. It comes before any other. */
  #lost: Prepared | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #opening: Opening = () => [];
  #lastTaken = 0;
  #dirtySince: number | undefined;
  /** Of all changes so far: how many, and how often another writer was first. */
  readonly counters = { changes: 0, conflicts: 0, mostConflicts: 0 };

  /** `nextSeq` numbers the changes of this writer; wallets come and go, numbers never do again. */
  constructor(deps: CommitDeps, key: string, writer: { id: string; nextSeq: () => number }) {
    this.#deps = deps;
    this.#key = key;
    this.#writer = writer.id;
    this.#nextSeq = writer.nextSeq;
  }

  /** Reserves out of a block at hand; nothing when there is none that suffices. */
  takeNow(amount: Held): Purse | undefined {
    this.#lastTaken = this.#deps.clock.monotonic();
    // Who waits for a block comes first, or it would be gone by the time it is there.
    const purse = this.#leasing === 0 ? this.#currentPurse() : undefined;
    return purse?.reserve(amount) === true ? purse : undefined;
  }

  /** Reserves, out of a block at hand or a new one. Throws TEMPER_LEDGER_UNAVAILABLE. */
  async take(amount: Held, quotas: WalletQuotas): Promise<Purse | Denial> {
    this.#lastTaken = this.#deps.clock.monotonic();
    this.#opening = quotas.opening;
    this.#leasing += 1;
    try {
      return await this.#inOrder(() => this.#lease(amount, quotas));
    } finally {
      this.#leasing -= 1;
    }
  }

  settle(purse: Purse, amount: Held, used: Counts): void {
    purse.settle(amount, used);
    this.#dirtySince ??= this.#deps.clock.monotonic();
  }

  /** Counts a call, which no block is leased for. Counters that are missing begin with what was spent before, whatever comes first. */
  count(used: Counts, opening: Opening): void {
    this.#opening = opening;
    const time = this.#deps.clock.now().getTime();
    const purse = this.#currentPurse() ?? this.#open({ ...NOTHING_HELD, time }, this.#known?.document.epoch ?? '');
    this.settle(purse, NOTHING_HELD, used);
  }

  /** The shared counters beside what was settled here and is not in them: read while none of it is on its way. */
  beside<T>(read: () => Promise<T>): Promise<{ shared: T; pending: Counts[] }> {
    return this.#inOrder(async () => {
      const shared = await read();
      return { shared, pending: this.#purses.map((purse) => purse.pending) };
    });
  }

  get isEmpty(): boolean {
    return this.#purses.length === 0 && this.#lost === undefined && this.#working === 0;
  }

  /** Is there something to tell: settled a while ago, unused for long, or of an hour that is over? */
  isDue(settledFor: number, unusedFor: number): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#lost !== undefined) return true;
    if (this.#dirtySince !== undefined && now - this.#dirtySince >= settledFor) return true;
    const idle = now - this.#lastTaken >= unusedFor;
    return this.#purses.some((purse) => purse.isEmpty || (purse.hasUnused && (idle || this.#isOver(purse))));
  }

  /** Tells the shared counters what was settled, and gives back what lies unused, of the current hour only when asked to. Throws TEMPER_LEDGER_UNAVAILABLE. */
  flush(unusedFor: number): Promise<void> {
    return this.#inOrder(async () => {
      await this.#resolveLost();
      const idle = this.#deps.clock.monotonic() - this.#lastTaken >= unusedFor;
      this.#dirtySince = undefined;
      const prepared = this.#prepare(idle);
      if (prepared.parts.length > 0) await this.#commit(prepared);
      this.#purses = this.#purses.filter((purse) => !purse.isEmpty);
    });
  }

  async #lease(amount: Held, { limits, prefix }: WalletQuotas): Promise<Purse | Denial> {
    await this.#resolveLost();
    for (let round = 0; round < MOST_LEASES; round += 1) {
      const purse = this.#currentPurse();
      if (purse?.reserve(amount) === true) return purse;
      const available = purse?.available() ?? NOTHING_HELD;
      const need = eachHeld((key) => (amount[key] > 0 ? Math.max(0, amount[key] - available[key]) : 0));
      const prepared = this.#prepare(false);
      prepared.change.wanted = { need, limits, prefix };
      const committed = await this.#commit(prepared);
      if (committed.kind === 'denied') return committed.denial;
    }
    throw new RangeError(`the blocks leased for ${this.#key} never sufficed`);
  }

  /** Takes what is settled out of all purses; of hours that are over, and of this one when idle, what is unused too. */
  #prepare(idle: boolean): Prepared {
    const parts = this.#purses
      .filter((purse) => purse.hasPending || (purse.hasUnused && (idle || this.#isOver(purse))))
      .map((purse) => ({ purse, part: purse.takeOut(idle || this.#isOver(purse)) }));
    const time = this.#deps.clock.now().getTime();
    const settled = parts.map(({ part }) => part);
    return { change: { writer: this.#writer, seq: this.#nextSeq(), time, settled }, parts, lost: false };
  }

  async #commit(prepared: Prepared): Promise<Extract<Committed, { kind: 'made' | 'denied' }>> {
    const committed = await commitChange(this.#deps, this.#key, prepared.change, {
      known: this.#known,
      lostBefore: prepared.lost,
      opening: this.#opening,
    });
    switch (committed.kind) {
      case 'made':
        this.#made(committed.current, committed.block);
        this.counters.changes += 1;
        this.counters.conflicts += committed.conflicts;
        this.counters.mostConflicts = Math.max(this.counters.mostConflicts, committed.conflicts);
        return committed;
      case 'denied':
        this.#known = committed.current;
        this.#putBack(prepared);
        return committed;
      case 'failed':
        this.#known = undefined;
        this.#putBack(prepared);
        throw committed.error;
      case 'lost':
        this.#known = undefined;
        this.#lost = { ...prepared, lost: true };
        throw committed.error;
      default:
        return committed satisfies never;
    }
  }

  /** What was reserved meanwhile has found its block or is gone; the wish for it is not repeated, the block is if it was leased. */
  async #resolveLost(): Promise<void> {
    const lost = this.#lost;
    if (lost === undefined) return;
    this.#lost = undefined;
    delete lost.change.wanted;
    await this.#commit(lost);
  }

  #made(current: Current, block: Block | undefined): void {
    this.#known = current;
    for (const purse of this.#purses) purse.belongTo(current.document.epoch);
    if (block === undefined) return;
    const hour = hourOf(block.time);
    const purse = this.#purses.find((known) => known.hour === hour) ?? this.#open(block, current.document.epoch);
    purse.add(block);
  }

  #open(block: Block, epoch: string): Purse {
    const purse = new Purse(block, epoch);
    this.#purses.push(purse);
    return purse;
  }

  #putBack({ parts }: Prepared): void {
    for (const { purse, part } of parts) purse.putBack(part);
    if (parts.length > 0) this.#dirtySince ??= this.#deps.clock.monotonic();
  }

  /** Of the hour that is, or of the one that began early by another gateway's clock. */
  #currentPurse(): Purse | undefined {
    const last = this.#purses.at(-1);
    return last === undefined || this.#isOver(last) ? undefined : last;
  }

  #isOver(purse: Purse): boolean {
    return purse.hour < hourOf(this.#deps.clock.now().getTime());
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    this.#working += 1;
    const mine = this.#tail.then(work, work).finally(() => {
      this.#working -= 1;
    });
    this.#tail = mine.catch(() => undefined);
    return mine;
  }
}
