import type { Clock } from '../lib/clock.ts';
import type { RecordStore } from '../lib/record-store.ts';
import {
  type Account,
  chargeAccount,
  type Counts,
  toCounts,
  checkQuota,
  emptyAccount,
  rollAccount,
} from './account.ts';
import { isNearlyUsed, type QuotaUse, quotaUses } from './nearly-used.ts';
import type { QuotaLimits } from './quotas.ts';
import { type Journal, type JournalEntry, openJournal } from './journal.ts';
import type { Denial, Ledger, Reservation } from './port.ts';

/** An account that a ledger charges, with its quotas. */
export interface AccountHolder {
  /** Unique in the ledger book, e.g. `agent/team-a/analyst`, `policy/team-a/standard`. */
  name: string;
  quotas: QuotaLimits;
  /** Prefix of the quota field in a denial: `spec.quotas.`, `TrustPolicy "standard" spec.quotas.`. */
  prefix: string;
}

/** All accounts of one process. Agents under the same policy share the account of the policy. */
export interface LedgerBook {
  /** A ledger for one caller. Each reservation must fit into all these accounts and is charged to all. `usage()` reports the first account. `onNearlyUsed` receives each quota once per window. */
  ledger(holders: readonly [AccountHolder, ...AccountHolder[]], onNearlyUsed?: (use: QuotaUse) => void): Ledger;
  /** Resolves when all changes are durable. Without `close` no charge is lost, only settlements, which leave the larger reservation. */
  close(): Promise<void>;
}

type OpenReservation = Extract<JournalEntry, { op: 'reserve' }> & { key: string };

/**
 * Opens the counters stored below `ledger/`. A reservation of tokens, cost or bytes is durable before it is granted. A settlement
 * becomes durable with the next write, because a settlement lost in a crash only leaves the larger reservation charged.
 */
export async function openLedgerBook(records: RecordStore, clock: Clock): Promise<LedgerBook> {
  const accounts = new Map<string, Account>();
  const open = new Map<string, OpenReservation>();
  const journal = await openJournal(records, accounts, () => [...open.values()].map(withoutKey));
  return new Book(accounts, open, journal, clock);
}

class Book implements LedgerBook {
  readonly #accounts: Map<string, Account>;
  readonly #open: Map<string, OpenReservation>;
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Open reservations by idempotency key. */
  readonly #granted = new Map<string, Promise<string>>();
  /** By account and quota: the end of the window in which its use was announced. */
  readonly #announced = new Map<string, string>();
  #serial = 0;

  constructor(accounts: Map<string, Account>, open: Map<string, OpenReservation>, journal: Journal, clock: Clock) {
    this.#accounts = accounts;
    this.#open = open;
    this.#journal = journal;
    this.#clock = clock;
  }

  close(): Promise<void> {
    return this.#journal.flush();
  }

  ledger(holders: readonly [AccountHolder, ...AccountHolder[]], onNearlyUsed?: (use: QuotaUse) => void): Ledger {
    return {
      reserve: (maximum, op) => this.#reserve(holders, toCounts(maximum), `${holders[0].name} ${op.key}`),
      commit: async (id, used) => {
        await this.#settle(id, toCounts(used));
        if (onNearlyUsed !== undefined) this.#nearlyUsed(holders).forEach(onNearlyUsed);
      },
      usage: async () => {
        const account = this.#account(holders[0].name, this.#clock.now().getTime());
        const { hour, day, month } = structuredClone(account);
        return { hour: hour.counts, day: day.counts, month: month.counts };
      },
    };
  }

  async #reserve(holders: readonly AccountHolder[], counts: Counts, key: string): Promise<Reservation | Denial> {
    const before = this.#granted.get(key);
    if (before !== undefined) return { granted: true, id: await before };
    const time = this.#clock.now().getTime();
    for (const { name, quotas, prefix } of holders) {
      const denial = checkQuota(this.#account(name, time), quotas, prefix, counts, time);
      if (denial !== undefined) return denial;
    }
    this.#serial += 1;
    const accounts = holders.map((holder) => holder.name);
    const entry: OpenReservation = { op: 'reserve', id: `r-${this.#serial}`, time, accounts, counts, key };
    // Charged before the first await, so that concurrent reservations see each other.
    this.#charge(entry, counts, 1);
    this.#open.set(entry.id, entry);
    // Tool calls are limited per minute only, so a crash may lose their open reservations.
    const granted = isSpend(counts) ? this.#write(entry) : Promise.resolve(entry.id);
    this.#granted.set(key, granted);
    return { granted: true, id: await granted };
  }

  async #write(entry: OpenReservation): Promise<string> {
    try {
      await this.#journal.write(withoutKey(entry));
      return entry.id;
    } catch (error) {
      this.#forget(entry);
      this.#charge(entry, entry.counts, -1);
      throw error;
    }
  }

  async #settle(id: string, used: Counts): Promise<void> {
    const entry = this.#open.get(id);
    if (entry === undefined) return;
    this.#forget(entry);
    this.#charge(entry, entry.counts, -1);
    this.#charge(entry, used, 1);
    const settled = { op: 'settle', id, counts: used } as const;
    // Not awaited: if the entry is lost, the reservation stays charged; the next reservation reports a write error.
    if (isSpend(entry.counts)) this.#journal.write(settled).catch(() => undefined);
    else this.#journal.defer([withoutKey(entry), settled]);
  }

  /** The quotas that are nearly used, each once per window: after a settlement, because a reservation may be far larger than what is used. */
  #nearlyUsed(holders: readonly AccountHolder[]): QuotaUse[] {
    const time = this.#clock.now().getTime();
    return holders.flatMap(({ name, quotas, prefix }) =>
      quotaUses(this.#account(name, time), quotas, prefix, time).filter((use) => {
        const key = `${name} ${use.field}`;
        if (!isNearlyUsed(use) || this.#announced.get(key) === use.resumesAt) return false;
        this.#announced.set(key, use.resumesAt);
        return true;
      }),
    );
  }

  #forget(entry: OpenReservation): void {
    this.#open.delete(entry.id);
    this.#granted.delete(entry.key);
  }

  #charge(entry: OpenReservation, counts: Counts, sign: 1 | -1): void {
    const now = Math.max(entry.time, this.#clock.now().getTime());
    for (const name of entry.accounts) chargeAccount(this.#account(name, now), entry.time, counts, sign);
  }

  #account(name: string, time: number): Account {
    const account = this.#accounts.get(name) ?? emptyAccount();
    this.#accounts.set(name, account);
    rollAccount(account, time);
    return account;
  }
}

function isSpend({ inputTokens, outputTokens, costMicros, networkBytes }: Counts): boolean {
  return inputTokens + outputTokens + costMicros + networkBytes > 0;
}

function withoutKey({ op, id, time, accounts, counts }: OpenReservation): JournalEntry {
  return { op, id, time, accounts, counts };
}
