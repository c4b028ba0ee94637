import { SerialQueue } from '../lib/async/serial-queue.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { RecordStore } from '../lib/record-store.ts';
import {
  type Account,
  parseAccount,
  chargeAccount,
  type Counts,
  parseCounts,
  emptyAccount,
  rollAccount,
} from './account.ts';

export type JournalEntry =
  | { op: 'reserve'; id: string; time: number; accounts: string[]; counts: Counts }
  | { op: 'settle'; id: string; counts: Counts };

/** Stores the counters as a document (snapshot), and the changes since the snapshot as an append-only log. */
export interface Journal {
  /** Resolves when the entry is durable. Entries that arrive during a write share the next write. */
  write(entry: JournalEntry): Promise<void>;
  /** Queues entries that a crash may lose. They are part of the next write, or are written after MAX_DEFER_MS. */
  defer(entries: readonly JournalEntry[]): void;
  /** Resolves when all entries so far are durable, including deferred ones. */
  flush(): Promise<void>;
}

const STATE = 'ledger';
/** After this number of lines, a new snapshot is written and a new log started. */
const MAX_LOG_LINES = 1_000;
/** Maximum time that deferred entries wait for the next write. */
const MAX_DEFER_MS = 1_000;

/**
 * Restores the counters, also after a crash: reservations without a settlement stay charged in full. Then starts a new log, so
 * that the log does not grow without limit. `accounts` are the live counters, which every rotation stores; `open` returns the
 * reservations in flight, which a rotation carries over.
 *
 *     records:  ledger/state  {generation: n, accounts, open}      snapshot
 *               ledger/journal-n  [entry, …]                      changes since the snapshot
 *     rotation: put state {generation: n+1} → drop journal-n → append to journal-(n+1)
 *
 * A crash between the two steps leaves journal-n, which belongs to no snapshot: the next start drops it.
 */
export async function openJournal(
  records: RecordStore,
  accounts: Map<string, Account>,
  open: () => JournalEntry[],
): Promise<Journal> {
  let generation = await restore(records, accounts);
  let lines = 0;
  const writes = new SerialQueue();
  let waiting: { entries: JournalEntry[]; done: Promise<void> } | undefined;
  let deferred: JournalEntry[] = [];
  let timer: NodeJS.Timeout | undefined;

  const rotate = async (): Promise<void> => {
    const next = generation + 1;
    // A copy: charges during the write belong to the new log.
    const state = structuredClone({ generation: next, accounts: Object.fromEntries(accounts), open: open() });
    await records.put(STATE, 'state', state as unknown as Json);
    await records.deleteCollection(logOf(generation));
    generation = next;
    lines = 0;
  };
  const flush = async (entries: JournalEntry[]): Promise<void> => {
    waiting = undefined;
    // The live counters already include these entries, and no entry that waits for a later write: the snapshot makes them durable.
    if (lines >= MAX_LOG_LINES) return rotate();
    await records.append(logOf(generation), entries as unknown as Json);
    lines += 1;
  };
  if (generation > 0) await records.deleteCollection(logOf(generation - 1));
  // Stores the restored state once; an empty ledger needs no snapshot.
  if (accounts.size > 0) await rotate();
  const write = (entries: readonly JournalEntry[]): Promise<void> => {
    if (waiting === undefined) {
      const joined: JournalEntry[] = [];
      waiting = { entries: joined, done: writes.run(() => flush(joined)) };
    }
    waiting.entries.push(...deferred, ...entries);
    deferred = [];
    clearTimeout(timer);
    timer = undefined;
    return waiting.done;
  };
  return {
    write: (entry) => write([entry]),
    defer(entries) {
      deferred.push(...entries);
      // A write error is reported by the next reservation that has to be durable.
      timer ??= setTimeout(() => void write([]).catch(() => undefined), MAX_DEFER_MS).unref();
    },
    flush: () => (deferred.length > 0 ? write([]) : (waiting?.done ?? writes.idle())),
  };
}

/** The counters of all accounts at this time. Only reads, so it needs no lock; entries that are being written may be missing. */
export async function readUsage(records: RecordStore, time: number): Promise<Map<string, Account>> {
  const accounts = new Map<string, Account>();
  await restore(records, accounts);
  for (const account of accounts.values()) rollAccount(account, time);
  return accounts;
}

function logOf(generation: number): string {
  return `ledger/journal-${generation}`;
}

async function restore(records: RecordStore, accounts: Map<string, Account>): Promise<number> {
  const state = (await records.get(STATE, 'state')) ?? { generation: 0, accounts: {}, open: [] };
  if (!isJsonObject(state) || typeof state.generation !== 'number' || !isJsonObject(state.accounts))
    throw corrupt('state');
  for (const [name, value] of Object.entries(state.accounts)) {
    const account = parseAccount(value);
    if (account === undefined) throw corrupt(`account "${name}"`);
    accounts.set(name, account);
  }
  const reservations = new Map<string, Extract<JournalEntry, { op: 'reserve' }>>();
  for (const value of Array.isArray(state.open) ? state.open : []) {
    const entry = journalEntry(value);
    if (entry?.op === 'reserve') reservations.set(entry.id, entry);
  }
  for (const line of await records.read(logOf(state.generation))) {
    for (const value of Array.isArray(line) ? line : [line]) replay(journalEntry(value), accounts, reservations);
  }
  return state.generation;
}

function replay(
  entry: JournalEntry | undefined,
  accounts: Map<string, Account>,
  reservations: Map<string, Extract<JournalEntry, { op: 'reserve' }>>,
): void {
  if (entry === undefined) throw corrupt('an entry of its journal');
  if (entry.op === 'reserve') {
    reservations.set(entry.id, entry);
    charge(accounts, entry, entry.counts, 1);
    return;
  }
  const reservation = reservations.get(entry.id);
  if (reservation === undefined) return;
  reservations.delete(entry.id);
  charge(accounts, reservation, reservation.counts, -1);
  charge(accounts, reservation, entry.counts, 1);
}

function charge(
  accounts: Map<string, Account>,
  reservation: { time: number; accounts: string[] },
  counts: Counts,
  sign: 1 | -1,
): void {
  for (const name of reservation.accounts) {
    const account = accounts.get(name) ?? emptyAccount();
    accounts.set(name, account);
    rollAccount(account, reservation.time);
    chargeAccount(account, reservation.time, counts, sign);
  }
}

function journalEntry(value: Json): JournalEntry | undefined {
  if (!isJsonObject(value) || typeof value.id !== 'string') return undefined;
  const counts = parseCounts(value.counts);
  if (counts === undefined) return undefined;
  if (value.op === 'settle') return { op: 'settle', id: value.id, counts };
  if (value.op !== 'reserve' || typeof value.time !== 'number' || !Array.isArray(value.accounts)) return undefined;
  const accounts = value.accounts.filter((name) => typeof name === 'string');
  return { op: 'reserve', id: value.id, time: value.time, accounts, counts };
}

function corrupt(what: string): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `the ledger cannot be read (${what}); restore its folder from a copy`);
}
