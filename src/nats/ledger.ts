import { type Counts, countsOf } from '../ledger/account.ts';
import type { AccountHolder } from '../ledger/ledger.ts';
import type { Amounts, Denial, Ledger, Reservation } from '../ledger/port.ts';
import type { Clock } from '../lib/clock.ts';
import type { Ids } from '../lib/ids.ts';
import { type Op, remainingMilliseconds } from '../lib/operation.ts';
import { TemperError } from '../lib/errors.ts';
import { chargedAt, type Held, heldOf, rolled } from './ledger-document.ts';
import { type CommitDeps, type Opening, readDocument, unavailable } from './ledger-commit.ts';
import { accountKey } from './ledger-keys.ts';
import { MinuteCalls } from './ledger-minutes.ts';
import type { Purse } from './ledger-purse.ts';
import type { LedgerStore } from './ledger-store.ts';
import { Wallet } from './ledger-wallet.ts';

export interface SharedLedgerDeps {
  store: LedgerStore;
  clock: Clock;
  ids: Ids;
  /** From 0 up to 1. */
  random: () => number;
  /** Between how many gateways the calls of a minute are divided; 1 when absent. */
  shares?: () => number;
  /** Told of what could not be written in the background; it is tried again. */
  failed: (error: unknown) => void;
}

/** Who is charged, and what was spent before its counters were begun: asked when they are missing. */
export interface SharedHolder extends AccountHolder {
  opening?: Opening;
}

/** What one account was charged in the windows that are now. */
export interface AccountReport {
  account: string;
  /** Settled, and held beside it: in flight, or leased to a gateway for what comes next. */
  windows: Record<'hour' | 'day' | 'month', { start: number; spent: Counts; held: Held }>;
}

/** Counters in a bucket that many gateways share. One for each process. */
export interface SharedLedger extends AsyncDisposable {
  /** The ledger of one caller: every reservation must find room in each of these accounts and is charged to all. `usage()` is the first one's. */
  ledger(holders: readonly [SharedHolder, ...SharedHolder[]]): Ledger;
  report(account: string, opening?: Opening): Promise<AccountReport>;
  /** Over all accounts of this process. */
  contention(): { changes: number; conflicts: number; mostConflicts: number };
  /** Gives back what lies unused. What is in flight stays charged in full. */
  close(): Promise<void>;
}

const NO_OPENING: Opening = () => [];
const FLUSH_EVERY = 1_000;
/** What was settled is told to the others this much later, what lies unused is given back after that much. */
const SETTLED_MILLISECONDS = 2_000;
const UNUSED_MILLISECONDS = 10_000;
const FLUSHED_AT_ONCE = 32;

export function openSharedLedger(deps: SharedLedgerDeps): SharedLedger {
  return new Shared(deps);
}

interface Part {
  wallet: Wallet;
  purse: Purse;
}

interface Open {
  key: string;
  held: Held;
  parts: readonly Part[];
  holders: readonly SharedHolder[];
}

class Shared implements SharedLedger {
  readonly #deps: SharedLedgerDeps;
  readonly #commit: CommitDeps;
  readonly #writer: { id: string; nextSeq: () => number };
  #changes = 0;
  readonly #wallets = new Map<string, Wallet>();
  readonly #minutes: MinuteCalls;
  readonly #open = new Map<string, Open>();
  /** Reservations in flight by their idempotency key. */
  readonly #granted = new Map<string, Promise<Reservation | Denial>>();
  readonly #closing = new AbortController();
  readonly #flushing: Promise<void>;
  readonly #past = { changes: 0, conflicts: 0, mostConflicts: 0 };
  #serial = 0;

  constructor(deps: SharedLedgerDeps) {
    const { store, clock, random, ids } = deps;
    this.#deps = deps;
    this.#minutes = new MinuteCalls(clock, deps.shares ?? (() => 1));
    this.#commit = { store, clock, random, ids };
    this.#writer = { id: ids.next('ledger'), nextSeq: () => (this.#changes += 1) };
    this.#flushing = this.#flushRegularly();
  }

  ledger(holders: readonly [SharedHolder, ...SharedHolder[]]): Ledger {
    return {
      reserve: (maximum, op) => this.#reserveOnce(holders, countsOf(maximum), op),
      settle: async (id, used) => this.#settle(id, countsOf(used)),
      usage: () => this.#usage(holders[0]),
    };
  }

  async report(account: string, opening: Opening = NO_OPENING): Promise<AccountReport> {
    const time = this.#deps.clock.now().getTime();
    const read = () => this.#read(account, opening);
    const { shared, pending: own } = (await this.#wallets.get(account)?.beside(read)) ?? {
      shared: await read(),
      pending: [],
    };
    const { spent, held } = rolled(shared.document, time);
    const window = (kind: 'hour' | 'day' | 'month') => {
      const settled = own.reduce(add, spent[kind].counts);
      const pending = heldOf(own.reduce(add, countsOf({})));
      const all = heldOf(held[kind].counts);
      const less = (key: keyof Held): number => Math.max(0, all[key] - pending[key]);
      return {
        start: spent[kind].start,
        spent: settled,
        held: { tokens: less('tokens'), costMicros: less('costMicros'), networkBytes: less('networkBytes') },
      };
    };
    return { account, windows: { hour: window('hour'), day: window('day'), month: window('month') } };
  }

  contention(): { changes: number; conflicts: number; mostConflicts: number } {
    const sum = { ...this.#past };
    for (const { counters } of this.#wallets.values()) addCounters(sum, counters);
    return sum;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#flushing;
    await this.#flush([...this.#wallets.values()], 0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The same key twice, while the first is in flight, is one reservation. */
  #reserveOnce(
    holders: readonly [SharedHolder, ...SharedHolder[]],
    counts: Counts,
    op: Op,
  ): Promise<Reservation | Denial> {
    const key = `${holders[0].name} ${op.key}`;
    const before = this.#granted.get(key);
    if (before !== undefined) return before;
    const made = this.#reserve(holders, counts, key, op);
    this.#granted.set(key, made);
    const forget = (): void => {
      this.#granted.delete(key);
    };
    made.then((answer) => (answer.granted ? undefined : forget()), forget);
    return made;
  }

  async #reserve(holders: readonly SharedHolder[], counts: Counts, key: string, op: Op): Promise<Reservation | Denial> {
    if (this.#closing.signal.aborted) throw unavailable(new Error('this gateway is about to end'));
    const denial = this.#minutes.take(holders, counts.toolCalls);
    if (denial !== undefined) return denial;
    const held = heldOf(counts);
    const parts: Part[] = [];
    try {
      for (const { name, quotas, prefix, opening = NO_OPENING } of isSpend(held) ? holders : []) {
        const wallet = this.#wallet(name);
        const taking = () => wallet.take(held, { limits: quotas, prefix, opening });
        const purse = wallet.takeNow(held) ?? (await this.#waited(wallet, taking(), held, op));
        if ('granted' in purse) {
          release(parts, held);
          return purse;
        }
        parts.push({ wallet, purse });
      }
    } catch (error) {
      release(parts, held);
      throw error;
    }
    this.#serial += 1;
    const id = `r-${this.#serial}`;
    this.#open.set(id, { key, held, parts, holders });
    return { granted: true, id };
  }

  /** Who is not waited for gives back what it gets. */
  async #waited(wallet: Wallet, taking: Promise<Purse | Denial>, held: Held, op: Op): Promise<Purse | Denial> {
    const late = new AbortController();
    const { clock } = this.#deps;
    const over = clock.sleep(remainingMilliseconds(op, clock), AbortSignal.any([late.signal, op.signal])).then(
      () => tooLate(),
      () => tooLate(),
    );
    try {
      const first = await Promise.race([taking, over]);
      if (!(first instanceof TemperError)) return first;
      const giveBack = (purse: Purse | Denial): void => {
        if (!('granted' in purse)) wallet.settle(purse, held, countsOf({}));
      };
      taking.then(giveBack, () => undefined);
      throw first;
    } finally {
      late.abort();
    }
  }

  #settle(id: string, used: Counts): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    this.#granted.delete(open.key);
    for (const { wallet, purse } of open.parts) wallet.settle(purse, open.held, used);
    if (open.parts.length > 0 || Object.values(used).every((amount) => amount === 0)) return;
    for (const { name, opening = NO_OPENING } of open.holders) this.#wallet(name).count(used, opening);
  }

  async #usage({ name, opening = NO_OPENING }: SharedHolder) {
    const time = this.#deps.clock.now().getTime();
    const { document } = await this.#read(name, opening);
    const { hour, day, month } = chargedAt(document, time);
    return { hour: hour.counts, day: day.counts, month: month.counts, minuteToolCalls: this.#minutes.of(name) };
  }

  async #read(account: string, opening: Opening) {
    try {
      return await readDocument(this.#commit, accountKey(account), opening);
    } catch (error) {
      throw unavailable(error);
    }
  }

  #wallet(account: string): Wallet {
    const known = this.#wallets.get(account);
    if (known !== undefined) return known;
    const wallet = new Wallet(this.#commit, accountKey(account), this.#writer);
    this.#wallets.set(account, wallet);
    return wallet;
  }

  async #flushRegularly(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#deps.clock.sleep(FLUSH_EVERY, signal).catch(() => undefined);
      if (signal.aborted) return;
      const due = [...this.#wallets.values()].filter((wallet) =>
        wallet.isDue(SETTLED_MILLISECONDS, UNUSED_MILLISECONDS),
      );
      await this.#flush(due, UNUSED_MILLISECONDS);
      this.#forgetIdle();
    }
  }

  async #flush(wallets: readonly Wallet[], unusedFor: number): Promise<void> {
    for (let index = 0; index < wallets.length; index += FLUSHED_AT_ONCE) {
      const some = wallets.slice(index, index + FLUSHED_AT_ONCE);
      await Promise.all(some.map((wallet) => wallet.flush(unusedFor).catch(this.#deps.failed)));
    }
  }

  #forgetIdle(): void {
    this.#minutes.forgetPast();
    for (const [name, wallet] of this.#wallets) {
      if (!wallet.isEmpty) continue;
      addCounters(this.#past, wallet.counters);
      this.#wallets.delete(name);
    }
  }
}

function release(parts: readonly Part[], held: Held): void {
  for (const { wallet, purse } of parts) wallet.settle(purse, held, countsOf({}));
}

function isSpend({ tokens, costMicros, networkBytes }: Held): boolean {
  return tokens + costMicros + networkBytes > 0;
}

function tooLate(): TemperError {
  const message = 'the spend counters did not answer in time; nothing was reserved';
  return new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
}

function add(left: Counts, right: Counts): Counts {
  const sum: Amounts = {};
  for (const key of Object.keys(left) as (keyof Counts)[]) sum[key] = left[key] + right[key];
  return countsOf(sum);
}

function addCounters(
  sum: { changes: number; conflicts: number; mostConflicts: number },
  more: { changes: number; conflicts: number; mostConflicts: number },
): void {
  sum.changes += more.changes;
  sum.conflicts += more.conflicts;
  sum.mostConflicts = Math.max(sum.mostConflicts, more.mostConflicts);
}
