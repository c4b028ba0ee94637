import { type Counts, toCounts } from '../../ledger/account.ts';
import type { AccountHolder } from '../../ledger/ledger.ts';
import type { Amounts, Denial, Ledger, Reservation } from '../../ledger/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { totalAt, type AllocationAmounts, amountsOf, rollWindows } from './account-record.ts';
import { type ChangeWriterDeps, type InitialSpend, readAccountRecord, ledgerUnavailable } from './change-writer.ts';
import { accountKey } from './account-key.ts';
import type { HourlyAllocation } from './hourly-allocation.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';
import { AccountAllocator } from './account-allocator.ts';

export interface SharedLedgerDeps {
  store: DocumentStore;
  clock: Clock;
  ids: IdGenerator;
  /** Random number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Called when a background write failed; the write is retried. */
  onError: (error: unknown) => void;
  /** Called after each written change, with the number of conflicts before it. */
  onWritten?: (conflicts: number) => void;
}

/** An account to charge, and the spend to start from when its record does not exist. */
export interface SharedAccountHolder extends AccountHolder {
  initialSpend?: InitialSpend;
}

/** Charges of one account in the current windows. */
export interface AccountReport {
  account: string;
  /** `spent`: committed. `held`: reserved by calls in flight, or allocated to a gateway and not used yet. */
  windows: Record<'hour' | 'day' | 'month', { start: number; spent: Counts; held: AllocationAmounts }>;
}

/** Compare-and-swap statistics. */
interface LedgerContention {
  /** Changes written. */
  changes: number;
  conflicts: number;
  /** Highest number of conflicts of one change. */
  maxConflicts: number;
}

/** Spend counters in a bucket that all gateways share. One instance per process. */
export interface SharedLedger extends AsyncDisposable {
  /**
   * The ledger of one caller. Every reservation must fit into the quotas of all these accounts and is charged to all. `usage()` reads the
   * first. Tool calls per minute are not counted here but in the agent's pod: reserving them throws TEMPER_INTERNAL.
   */
  ledger(holders: readonly [SharedAccountHolder, ...SharedAccountHolder[]]): Ledger;
  report(account: string, initialSpend?: InitialSpend): Promise<AccountReport>;
  /** Compare-and-swap statistics over all accounts of this process. */
  contention(): LedgerContention;
  /** Commits pending spend and releases unused allocations. Reservations in flight stay charged in full. */
  close(): Promise<void>;
}

const NO_INITIAL_SPEND: InitialSpend = () => [];
const FLUSH_INTERVAL_MS = 1_000;
/** Committed spend is written to the shared record after this delay. */
const COMMIT_DELAY_MS = 2_000;
/**
 * An unused allocation is released after this time. An agent that calls once a minute then needs no write to reserve. A gateway that crashes
 * leaves at most one allocation of each account that it served during this time charged, until the windows of the allocation end.
 */
const UNUSED_RETENTION_MS = 60_000;
const MAX_CONCURRENT_FLUSHES = 32;

export function openSharedLedger(deps: SharedLedgerDeps): SharedLedger {
  return new BucketLedger(deps);
}

interface ReservedPart {
  allocator: AccountAllocator;
  allocation: HourlyAllocation;
}

interface OpenReservation {
  key: string;
  held: AllocationAmounts;
  parts: readonly ReservedPart[];
  holders: readonly SharedAccountHolder[];
}

class BucketLedger implements SharedLedger {
  readonly #deps: SharedLedgerDeps;
  readonly #writeDeps: ChangeWriterDeps;
  readonly #writer: { id: string; nextSeq: () => number };
  #lastSeq = 0;
  readonly #allocators = new Map<string, AccountAllocator>();
  readonly #reservations = new Map<string, OpenReservation>();
  /** Reservations in flight by their idempotency key. */
  readonly #inFlightByKey = new Map<string, Promise<Reservation | Denial>>();
  readonly #closing = new AbortController();
  readonly #flushing: Promise<void>;
  readonly #closedContention: LedgerContention = { changes: 0, conflicts: 0, maxConflicts: 0 };
  #lastId = 0;

  constructor(deps: SharedLedgerDeps) {
    const { store, clock, random, ids, onWritten } = deps;
    this.#deps = deps;
    this.#writeDeps = { store, clock, random, ids, ...(onWritten === undefined ? {} : { onWritten }) };
    this.#writer = { id: ids.next('ledger'), nextSeq: () => (this.#lastSeq += 1) };
    this.#flushing = this.#flushRegularly();
  }

  ledger(holders: readonly [SharedAccountHolder, ...SharedAccountHolder[]]): Ledger {
    return {
      reserve: (maximum, op) => this.#reserveOnce(holders, toCounts(maximum), op),
      commit: async (id, used) => this.#commit(id, toCounts(used)),
      usage: () => this.#usage(holders[0]),
    };
  }

  async report(account: string, initialSpend: InitialSpend = NO_INITIAL_SPEND): Promise<AccountReport> {
    const time = this.#deps.clock.now().getTime();
    const read = () => this.#read(account, initialSpend);
    const { shared, pending } = (await this.#allocators.get(account)?.readConsistent(read)) ?? {
      shared: await read(),
      pending: [],
    };
    const { spent, held: allocated } = rollWindows(shared.record, time);
    const window = (kind: 'hour' | 'day' | 'month') => {
      const committed = pending.reduce(add, spent[kind].counts);
      const pendingAmounts = amountsOf(pending.reduce(add, toCounts({})));
      const all = amountsOf(allocated[kind].counts);
      const less = (key: keyof AllocationAmounts): number => Math.max(0, all[key] - pendingAmounts[key]);
      return {
        start: spent[kind].start,
        spent: committed,
        held: { tokens: less('tokens'), costMicros: less('costMicros'), networkBytes: less('networkBytes') },
      };
    };
    return { account, windows: { hour: window('hour'), day: window('day'), month: window('month') } };
  }

  contention(): LedgerContention {
    const sum = { ...this.#closedContention };
    for (const { counters } of this.#allocators.values()) addContention(sum, counters);
    return sum;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#flushing;
    await this.#flush([...this.#allocators.values()], 0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Idempotent: a repeated key returns the existing reservation until that is committed or denied. */
  #reserveOnce(
    holders: readonly [SharedAccountHolder, ...SharedAccountHolder[]],
    counts: Counts,
    op: CallOptions,
  ): Promise<Reservation | Denial> {
    const key = `${holders[0].name} ${op.key}`;
    const existing = this.#inFlightByKey.get(key);
    if (existing !== undefined) return existing;
    const reservation = this.#reserve(holders, counts, key, op);
    this.#inFlightByKey.set(key, reservation);
    const remove = (): void => {
      this.#inFlightByKey.delete(key);
    };
    reservation.then((answer) => (answer.granted ? undefined : remove()), remove);
    return reservation;
  }

  async #reserve(
    holders: readonly SharedAccountHolder[],
    counts: Counts,
    key: string,
    op: CallOptions,
  ): Promise<Reservation | Denial> {
    if (this.#closing.signal.aborted) throw ledgerUnavailable(new Error('this gateway is shutting down'));
    // A limit per minute needs one counter: the only pod of the agent has it.
    if (counts.toolCalls > 0)
      throw new TemperError('TEMPER_INTERNAL', 'tool calls are counted in the pod, not in a gateway');
    const held = amountsOf(counts);
    const charged = isPositive(held) ? holders : [];
    // All accounts at once, because each may need a write. Settled, so that every granted part is known and can be released.
    const results = await Promise.allSettled(charged.map((holder) => this.#reservePart(holder, held, op)));
    const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const parts = answers.flatMap((answer) => ('granted' in answer ? [] : [answer]));
    const failed = results.find((result) => result.status === 'rejected');
    const denial = answers.find((answer) => 'granted' in answer);
    if (failed !== undefined || denial !== undefined) releaseAll(parts, held);
    if (failed !== undefined) throw failed.reason;
    if (denial !== undefined) return denial;
    this.#lastId += 1;
    const id = `r-${this.#lastId}`;
    this.#reservations.set(id, { key, held, parts, holders });
    return { granted: true, id };
  }

  async #reservePart(
    { name, quotas, prefix, initialSpend = NO_INITIAL_SPEND }: SharedAccountHolder,
    held: AllocationAmounts,
    op: CallOptions,
  ): Promise<ReservedPart | Denial> {
    const allocator = this.#allocator(name);
    const available = allocator.tryReserve(held);
    if (available !== undefined) return { allocator, allocation: available };
    const reserving = allocator.reserve(held, { limits: quotas, prefix, initialSpend });
    const allocation = await this.#withDeadline(allocator, reserving, held, op);
    return 'granted' in allocation ? allocation : { allocator, allocation };
  }

  /**
   * Waits for a reservation until the caller's deadline or cancellation. The reservation cannot be cancelled: it continues in the
   * allocator's queue, and its write may be in flight. If it succeeds after the deadline, its amount is released at once, because no
   * caller will commit it; otherwise the account would stay charged until its windows end. Both cannot happen: the race has one winner,
   * and only the loser's branch releases.
   *
   *     reserving ──in time──▶ returned, committed by the caller
   *         └──deadline──▶ TEMPER_LEDGER_UNAVAILABLE to the caller ──granted later──▶ released with zero spend
   *                                                               └─denied or failed later──▶ nothing was reserved
   */
  async #withDeadline(
    allocator: AccountAllocator,
    reserving: Promise<HourlyAllocation | Denial>,
    held: AllocationAmounts,
    op: CallOptions,
  ): Promise<HourlyAllocation | Denial> {
    const done = new AbortController();
    const { clock } = this.#deps;
    const timeout = clock.sleep(remainingMs(op, clock), AbortSignal.any([done.signal, op.signal])).then(
      () => timeoutError(),
      () => timeoutError(),
    );
    try {
      const first = await Promise.race([reserving, timeout]);
      if (!(first instanceof TemperError)) return first;
      const releaseIfGranted = (result: HourlyAllocation | Denial): void => {
        if (!('granted' in result)) allocator.commit(result, held, toCounts({}));
      };
      reserving.then(releaseIfGranted, () => undefined);
      throw first;
    } finally {
      done.abort();
    }
  }

  #commit(id: string, used: Counts): void {
    const reservation = this.#reservations.get(id);
    if (reservation === undefined) return;
    this.#reservations.delete(id);
    this.#inFlightByKey.delete(reservation.key);
    for (const { allocator, allocation } of reservation.parts) allocator.commit(allocation, reservation.held, used);
    if (reservation.parts.length > 0 || Object.values(used).every((amount) => amount === 0)) return;
    for (const { name, initialSpend = NO_INITIAL_SPEND } of reservation.holders)
      this.#allocator(name).recordUsage(used, initialSpend);
  }

  async #usage({ name, initialSpend = NO_INITIAL_SPEND }: SharedAccountHolder) {
    const time = this.#deps.clock.now().getTime();
    const { record: document } = await this.#read(name, initialSpend);
    const { hour, day, month } = totalAt(document, time);
    return {
      hour: hour.counts,
      day: day.counts,
      month: month.counts,
    };
  }

  async #read(account: string, initialSpend: InitialSpend) {
    try {
      return await readAccountRecord(this.#writeDeps, accountKey(account), initialSpend);
    } catch (error) {
      throw ledgerUnavailable(error);
    }
  }

  #allocator(account: string): AccountAllocator {
    const existing = this.#allocators.get(account);
    if (existing !== undefined) return existing;
    const allocator = new AccountAllocator(this.#writeDeps, accountKey(account), this.#writer);
    this.#allocators.set(account, allocator);
    return allocator;
  }

  async #flushRegularly(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_INTERVAL_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      const due = [...this.#allocators.values()].filter((allocator) =>
        allocator.isDue(COMMIT_DELAY_MS, UNUSED_RETENTION_MS),
      );
      await this.#flush(due, UNUSED_RETENTION_MS);
      this.#removeIdle();
    }
  }

  async #flush(allocators: readonly AccountAllocator[], unusedFor: number): Promise<void> {
    for (let index = 0; index < allocators.length; index += MAX_CONCURRENT_FLUSHES) {
      const some = allocators.slice(index, index + MAX_CONCURRENT_FLUSHES);
      await Promise.all(some.map((allocator) => allocator.flush(unusedFor).catch(this.#deps.onError)));
    }
  }

  #removeIdle(): void {
    for (const [name, allocator] of this.#allocators) {
      if (!allocator.isEmpty) continue;
      addContention(this.#closedContention, allocator.counters);
      this.#allocators.delete(name);
    }
  }
}

function releaseAll(parts: readonly ReservedPart[], held: AllocationAmounts): void {
  for (const { allocator, allocation } of parts) allocator.commit(allocation, held, toCounts({}));
}

function isPositive({ tokens, costMicros, networkBytes }: AllocationAmounts): boolean {
  return tokens + costMicros + networkBytes > 0;
}

function timeoutError(): TemperError {
  const message = 'the spend counters did not respond in time; nothing was reserved';
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
}

function add(left: Counts, right: Counts): Counts {
  const sum: Amounts = {};
  for (const key of Object.keys(left) as (keyof Counts)[]) sum[key] = left[key] + right[key];
  return toCounts(sum);
}

function addContention(sum: LedgerContention, more: LedgerContention): void {
  sum.changes += more.changes;
  sum.conflicts += more.conflicts;
  sum.maxConflicts = Math.max(sum.maxConflicts, more.maxConflicts);
}
