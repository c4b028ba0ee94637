import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Counts } from '../../ledger/account.ts';
import type { QuotaLimits } from '../../ledger/quotas.ts';
import type { Denial } from '../../ledger/port.ts';
import {
  type Allocation,
  mapAmounts,
  type AllocationAmounts,
  hourStart,
  type LedgerChange,
  ZERO_AMOUNTS,
  type CommittedPart,
} from './account-record.ts';
import {
  type ChangeWriterDeps,
  writeChange,
  type WriteResult,
  type AccountSnapshot,
  type InitialSpend,
} from './change-writer.ts';
import { HourlyAllocation } from './hourly-allocation.ts';

export interface AccountQuotas {
  limits: QuotaLimits;
  prefix: string;
  initialSpend: InitialSpend;
}

/** One change, and the amounts that it takes out of the allocations, to restore them if it is not written. */
interface PreparedChange {
  change: LedgerChange;
  parts: readonly { allocation: HourlyAllocation; part: CommittedPart }[];
}

/** What this gateway knows about the shared record. */
type RecordState =
  /** It must be read before the next write. */
  | { kind: 'unread' }
  /** As of the last write. Other gateways may have written since; a write then conflicts and reads. */
  | { kind: 'known'; snapshot: AccountSnapshot }
  /** The response to this change was lost, so the record may contain it. It is written again before any other change. */
  | { kind: 'uncertain'; change: PreparedChange };

/** Times are monotonic milliseconds. */
interface Activity {
  lastReservedAt: number;
  /** `reserve` calls that have not finished. */
  waiting: number;
  /** Time of the oldest commit that is not written; undefined: none. */
  dirtySince: number | undefined;
}

/** An allocation can be too small if the next hour starts during the request; it is then requested again. More rounds indicate a bug. */
const MAX_ALLOCATION_ROUNDS = 4;

/**
 * Allocations of one account to this gateway. Reservations are served from the current hour's allocation without a write; the shared
 * record is only written to get a new allocation, to commit spend and to release unused amounts. All reads and writes of one account run
 * one after the other in `#queue`.
 *
 *     tryReserve ──amount available──▶ reserved
 *     reserve ─────amount available──▶ reserved
 *        └──not available──▶ write {drained parts, request} ──written──▶ allocation added; `reserve` takes the amount from it
 *     flush ───────────────▶ write {drained parts}
 *
 * The state of the record decides what the next write does, and the result of the write decides the next state:
 *
 *     ┌────────┐ ──written or denied──▶ ┌───────┐ ──┐ written or denied
 *     │ unread │ ◄──────failed───────── │ known │   │
 *     └────────┘                        └───────┘ ◄─┘
 *       │    │ ▲                          │   ▲
 *       │    └─┘ failed          uncertain│   │ written: the next `reserve` or `flush` first writes the same change, with the
 *       │                                 ▼   │ same seq and without its request
 *       │                            ┌───────────┐
 *       └──────────uncertain───────▶ │ uncertain │ ──┐ uncertain again
 *                                    └───────────┘ ◄─┘
 *
 * The parts of a denied or failed change are restored; those of an uncertain change stay in it. `failed` and `uncertain` throw.
 */
export class AccountAllocator {
  readonly #deps: ChangeWriterDeps;
  readonly #key: string;
  readonly #writer: { readonly id: string; nextSeq: () => number };
  readonly #queue = new SerialQueue();
  /** By hour, the current one last. */
  #allocations: HourlyAllocation[] = [];
  #record: RecordState = { kind: 'unread' };
  readonly #activity: Activity = { lastReservedAt: 0, waiting: 0, dirtySince: undefined };
  #initialSpend: InitialSpend = () => [];
  /** Number of written changes and of write conflicts. */
  readonly counters = { changes: 0, conflicts: 0, maxConflicts: 0 };

  /** `nextSeq` numbers the changes of this writer. Shared by all allocators of a process, so that a new allocator never reuses a number. */
  constructor(deps: ChangeWriterDeps, key: string, writer: { id: string; nextSeq: () => number }) {
    this.#deps = deps;
    this.#key = key;
    this.#writer = writer;
  }

  /** Reserves from the current allocation without waiting; undefined when it does not suffice. */
  tryReserve(amount: AllocationAmounts): HourlyAllocation | undefined {
    this.#activity.lastReservedAt = this.#deps.clock.monotonic();
    // Waiting `reserve` calls go first; otherwise later calls could use up the allocation that was requested for them.
    const allocation = this.#activity.waiting === 0 ? this.#current() : undefined;
    return allocation?.reserve(amount) === true ? allocation : undefined;
  }

  /** Reserves from the current allocation or from a new one. Throws TEMPER_LEDGER_UNAVAILABLE. */
  async reserve(amount: AllocationAmounts, quotas: AccountQuotas): Promise<HourlyAllocation | Denial> {
    this.#activity.lastReservedAt = this.#deps.clock.monotonic();
    this.#initialSpend = quotas.initialSpend;
    this.#activity.waiting += 1;
    try {
      return await this.#queue.run(() => this.#allocate(amount, quotas));
    } finally {
      this.#activity.waiting -= 1;
    }
  }

  commit(allocation: HourlyAllocation, amount: AllocationAmounts, used: Counts): void {
    allocation.commit(amount, used);
    this.#activity.dirtySince ??= this.#deps.clock.monotonic();
  }

  /** Records spend without a reservation, such as tool calls. `initialSpend` is used if the account has no record yet. */
  recordUsage(used: Counts, initialSpend: InitialSpend): void {
    this.#initialSpend = initialSpend;
    const time = this.#deps.clock.now().getTime();
    const allocation = this.#current() ?? this.#addAllocation({ ...ZERO_AMOUNTS, time }, this.#epoch());
    this.commit(allocation, ZERO_AMOUNTS, used);
  }

  /** Reads the shared record together with the commits that are not written yet. No write is in flight during the read, so none is counted twice. */
  readConsistent<T>(read: () => Promise<T>): Promise<{ shared: T; pending: Counts[] }> {
    return this.#queue.run(async () => {
      const shared = await read();
      return { shared, pending: this.#allocations.map((allocation) => allocation.pending) };
    });
  }

  get isEmpty(): boolean {
    return this.#allocations.length === 0 && this.#record.kind !== 'uncertain' && this.#queue.size === 0;
  }

  /** True if there is something to write: spend committed long enough ago, or an allocation unused for long or of a past hour. Milliseconds. */
  isDue(settledFor: number, unusedFor: number): boolean {
    const now = this.#deps.clock.monotonic();
    if (this.#record.kind === 'uncertain') return true;
    if (this.#activity.dirtySince !== undefined && now - this.#activity.dirtySince >= settledFor) return true;
    const idle = now - this.#activity.lastReservedAt >= unusedFor;
    return this.#allocations.some(
      (allocation) => allocation.isEmpty || (allocation.hasUnused && (idle || this.#isPast(allocation))),
    );
  }

  /**
   * Writes committed spend and releases unused amounts; of the current hour only if nothing was reserved for `unusedFor` milliseconds.
   * Throws TEMPER_LEDGER_UNAVAILABLE.
   */
  flush(unusedFor: number): Promise<void> {
    return this.#queue.run(async () => {
      await this.#resolveUncertain();
      const idle = this.#deps.clock.monotonic() - this.#activity.lastReservedAt >= unusedFor;
      this.#activity.dirtySince = undefined;
      const prepared = this.#prepare(idle);
      if (prepared.parts.length > 0) await this.#write(prepared);
      this.#allocations = this.#allocations.filter((allocation) => !allocation.isEmpty);
    });
  }

  async #allocate(amount: AllocationAmounts, { limits, prefix }: AccountQuotas): Promise<HourlyAllocation | Denial> {
    await this.#resolveUncertain();
    for (let round = 0; round < MAX_ALLOCATION_ROUNDS; round += 1) {
      const allocation = this.#current();
      if (allocation?.reserve(amount) === true) return allocation;
      const available = allocation?.available() ?? ZERO_AMOUNTS;
      const need = mapAmounts((key) => (amount[key] > 0 ? Math.max(0, amount[key] - available[key]) : 0));
      const prepared = this.#prepare(false);
      prepared.change.request = { need, limits, prefix };
      const result = await this.#write(prepared);
      if (result.kind === 'denied') return result.denial;
    }
    throw new RangeError(`the allocations for ${this.#key} were too small ${MAX_ALLOCATION_ROUNDS} times`);
  }

  /** Takes committed spend out of all allocations; of past hours, and of the current hour when idle, the unused amounts too. */
  #prepare(idle: boolean): PreparedChange {
    const parts = this.#allocations
      .filter((allocation) => allocation.hasPending || (allocation.hasUnused && (idle || this.#isPast(allocation))))
      .map((allocation) => ({ allocation, part: allocation.drain(idle || this.#isPast(allocation)) }));
    const time = this.#deps.clock.now().getTime();
    const settled = parts.map(({ part }) => part);
    return { change: { writer: this.#writer.id, seq: this.#writer.nextSeq(), time, committed: settled }, parts };
  }

  /** `mayBeWritten`: an earlier write of this change got no response. Throws TEMPER_LEDGER_UNAVAILABLE. */
  async #write(
    prepared: PreparedChange,
    mayBeWritten = false,
  ): Promise<Extract<WriteResult, { kind: 'written' | 'denied' }>> {
    const cached = this.#record.kind === 'known' ? this.#record.snapshot : undefined;
    const initialSpend = this.#initialSpend;
    const result = await writeChange(this.#deps, this.#key, prepared.change, { cached, mayBeWritten, initialSpend });
    switch (result.kind) {
      case 'written':
        this.#record = { kind: 'known', snapshot: result.current };
        this.#applyWritten(result.current, result.allocation);
        this.#deps.onWritten?.(result.conflicts);
        this.counters.changes += 1;
        this.counters.conflicts += result.conflicts;
        this.counters.maxConflicts = Math.max(this.counters.maxConflicts, result.conflicts);
        return result;
      case 'denied':
        this.#record = { kind: 'known', snapshot: result.current };
        this.#restore(prepared);
        return result;
      case 'failed':
        this.#record = { kind: 'unread' };
        this.#restore(prepared);
        throw result.error;
      case 'uncertain':
        this.#record = { kind: 'uncertain', change: prepared };
        throw result.error;
      default:
        return result satisfies never;
    }
  }

  /**
   * Repeats the uncertain change without its allocation request: the calls that waited for it have ended. If the first write was
   * stored, its allocation is in the record and is added.
   */
  async #resolveUncertain(): Promise<void> {
    if (this.#record.kind !== 'uncertain') return;
    const { change: prepared } = this.#record;
    delete prepared.change.request;
    await this.#write(prepared, true);
  }

  #applyWritten(current: AccountSnapshot, block: Allocation | undefined): void {
    for (const allocation of this.#allocations) allocation.switchEpoch(current.record.epoch);
    if (block === undefined) return;
    const hour = hourStart(block.time);
    const allocation =
      this.#allocations.find((known) => known.hour === hour) ?? this.#addAllocation(block, current.record.epoch);
    allocation.add(block);
  }

  #addAllocation(block: Allocation, epoch: string): HourlyAllocation {
    const allocation = new HourlyAllocation(block, epoch);
    this.#allocations.push(allocation);
    return allocation;
  }

  #restore({ parts }: PreparedChange): void {
    for (const { allocation, part } of parts) allocation.restore(part);
    if (parts.length > 0) this.#activity.dirtySince ??= this.#deps.clock.monotonic();
  }

  /** The allocation of the current hour, or of the next hour if another gateway's clock has started it early. */
  #current(): HourlyAllocation | undefined {
    const last = this.#allocations.at(-1);
    return last === undefined || this.#isPast(last) ? undefined : last;
  }

  #isPast(allocation: HourlyAllocation): boolean {
    return allocation.hour < hourStart(this.#deps.clock.now().getTime());
  }

  /** The epoch of the record; '' while the record is not known. */
  #epoch(): string {
    return this.#record.kind === 'known' ? this.#record.snapshot.record.epoch : '';
  }
}
