import {
  type Account,
  parseAccount,
  chargeAccount,
  type Counts,
  toCounts,
  checkQuota,
  emptyAccount,
  remainingQuota,
  rollAccount,
} from '../../ledger/account.ts';
import type { QuotaLimits } from '../../ledger/quotas.ts';
import type { Denial } from '../../ledger/port.ts';
import { WINDOWS, windowStart } from '../../ledger/windows.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';

/** Amounts that are allocated to a gateway. Input and output tokens share one limit, so they are allocated together. */
export interface AllocationAmounts {
  tokens: number;
  costMicros: number;
  networkBytes: number;
}

/** The counters of one account, shared by all gateways. The charge is `spent` plus `held`. */
export interface AccountRecord {
  /** Unique per record: a record that was lost and created again under this key has another epoch. */
  epoch: string;
  /** Committed spend, exact. */
  spent: Account;
  /** Allocated to gateways: reserved by calls in flight, not used yet, or lost with a gateway that crashed. */
  held: Account;
  /** The last change of each gateway, so that a change whose response was lost is not applied twice. */
  writers: Record<string, LastChange>;
}

interface LastChange {
  seq: number;
  time: number;
  /** The allocation it received. */
  block?: Allocation;
}

/** One change by one gateway, complete before it is written. */
export interface LedgerChange {
  writer: string;
  /** Increases with each change of this writer. */
  seq: number;
  /** Milliseconds since the epoch, by the writer's clock. */
  time: number;
  /** Spend to commit and amounts to release, per allocation. */
  committed: readonly CommittedPart[];
  /** A request for a new allocation. */
  request?: AllocationRequest;
}

export interface CommittedPart {
  epoch: string;
  time: number;
  released: AllocationAmounts;
  spent: Counts;
}

interface AllocationRequest {
  /** Minimum amounts. */
  need: AllocationAmounts;
  limits: QuotaLimits;
  prefix: string;
}

export interface Allocation extends AllocationAmounts {
  /** Milliseconds since the epoch, within the hour that it is charged to. */
  time: number;
}

const WRITER_RETENTION_MS = 3_600_000;
/** One allocation is at most 1/64 of the limit and 1/8 of the remaining amount, unless the request needs more. */
const LIMIT_DIVISOR = 64;
const REMAINING_DIVISOR = 8;
/** Largest allocation under a limit, and size of an allocation without one. Bounds what stays charged after a gateway crash. */
const MAX_ALLOCATION: AllocationAmounts = { tokens: 200_000, costMicros: 1_000_000, networkBytes: 64 * 1_024 * 1_024 };
const UNLIMITED_ALLOCATION: AllocationAmounts = { tokens: 20_000, costMicros: 50_000, networkBytes: 1_024 * 1_024 };

export const ZERO_AMOUNTS: AllocationAmounts = { tokens: 0, costMicros: 0, networkBytes: 0 };

export function amountsOf(counts: Counts): AllocationAmounts {
  const { inputTokens, outputTokens, costMicros, networkBytes } = counts;
  return { tokens: inputTokens + outputTokens, costMicros, networkBytes };
}

export function mapAmounts(value: (key: keyof AllocationAmounts) => number): AllocationAmounts {
  return { tokens: value('tokens'), costMicros: value('costMicros'), networkBytes: value('networkBytes') };
}

function countsOfAmounts({ tokens, costMicros, networkBytes }: AllocationAmounts): Counts {
  return toCounts({ inputTokens: tokens, costMicros, networkBytes });
}

/** Spend of an account in one window as last copied elsewhere, such as into a status. A new record starts with it. */
export interface InitialSpendWindow {
  window: 'hour' | 'day' | 'month';
  /** Milliseconds since the epoch. */
  start: number;
  spent: Counts;
}

/** A new record, for an account without one (new, or lost with the store). Starts with the given spend of the windows that have not ended. */
export function newAccountRecord(
  epoch: string,
  initialSpend: readonly InitialSpendWindow[],
  time: number,
): AccountRecord {
  const spent = emptyAccount();
  rollAccount(spent, time);
  for (const { window, start, spent: counts } of initialSpend) {
    if (start >= spent[window].start) spent[window] = { start, counts };
  }
  const held = emptyAccount();
  rollAccount(held, Math.max(time, spent.hour.start));
  return { epoch, spent, held, writers: {} };
}

/** Undefined for a value that is not a valid record. */
export function parseAccountRecord(value: Json | undefined): AccountRecord | undefined {
  if (!isJsonObject(value) || typeof value['epoch'] !== 'string' || !isJsonObject(value['writers'])) return undefined;
  const spent = parseAccount(value['spent']);
  const held = parseAccount(value['held']);
  if (spent === undefined || held === undefined) return undefined;
  const writers: AccountRecord['writers'] = {};
  for (const [writer, last] of Object.entries(value['writers'])) {
    const found = parseLastChange(last);
    if (found === undefined) return undefined;
    writers[writer] = found;
  }
  return { epoch: value['epoch'], spent, held, writers };
}

function parseLastChange(value: Json): LastChange | undefined {
  if (!isJsonObject(value) || typeof value['seq'] !== 'number' || typeof value['time'] !== 'number') return undefined;
  const last: LastChange = { seq: value['seq'], time: value['time'] };
  const { block } = value;
  if (!isJsonObject(block)) return last;
  const amount = (key: string): number => (typeof block[key] === 'number' ? block[key] : 0);
  return { ...last, block: { ...mapAmounts(amount), time: amount('time') } };
}

/** The writer's last change if the record already contains this `seq`: the response to an earlier write was lost. */
export function findAppliedChange(
  document: AccountRecord,
  { writer, seq }: Pick<LedgerChange, 'writer' | 'seq'>,
): LastChange | undefined {
  const last = document.writers[writer];
  return last !== undefined && last.seq >= seq ? last : undefined;
}

/** Total charges in the windows that contain `time`: `spent` plus `held`. */
export function totalAt(document: AccountRecord, time: number): Account {
  const { spent, held } = rollWindows(document, time);
  const charged = structuredClone(spent);
  for (const kind of WINDOWS) {
    const { counts } = charged[kind];
    for (const key of Object.keys(counts) as (keyof Counts)[]) counts[key] += held[kind].counts[key];
  }
  return charged;
}

/** The record with the windows that contain `time`, or with later windows if another gateway's clock is ahead and has started them. */
export function rollWindows(document: AccountRecord, time: number): AccountRecord {
  const next = structuredClone(document);
  rollAccount(next.spent, effectiveTime(document, time));
  rollAccount(next.held, effectiveTime(document, time));
  return next;
}

/** A gateway whose clock is behind charges the hour that others have started: for all gateways the previous hour has ended. */
function effectiveTime({ spent, held }: AccountRecord, time: number): number {
  return Math.max(time, spent.hour.start, held.hour.start);
}

/** Pure: the record after a change, and the new allocation. After a denial the commits of the change must be part of the next change. */
export function applyChange(
  document: AccountRecord,
  change: LedgerChange,
): { next: AccountRecord; block?: Allocation } | { denial: Denial } {
  const next = rollWindows(document, change.time);
  for (const part of change.committed) {
    chargeAccount(next.spent, part.time, part.spent, 1);
    // A record that was lost and created again does not contain earlier allocations.
    if (part.epoch === next.epoch) chargeAccount(next.held, part.time, countsOfAmounts(part.released), -1);
  }
  const { seq } = change;
  next.writers = { ...recentWriters(next, change.time), [change.writer]: { seq, time: change.time } };
  if (change.request === undefined) return { next };
  const time = effectiveTime(next, change.time);
  const allocated = allocate(next, change.request, time);
  if ('granted' in allocated) return { denial: allocated };
  chargeAccount(next.held, time, countsOfAmounts(allocated), 1);
  const block = { ...allocated, time };
  next.writers[change.writer] = { seq, time: change.time, block };
  return { next, block };
}

function recentWriters({ writers }: AccountRecord, time: number): AccountRecord['writers'] {
  return Object.fromEntries(Object.entries(writers).filter(([, last]) => last.time > time - WRITER_RETENTION_MS));
}

function allocate(
  document: AccountRecord,
  { need, limits, prefix }: AllocationRequest,
  time: number,
): AllocationAmounts | Denial {
  const charged = totalAt(document, time);
  const denial = checkQuota(charged, limits, prefix, countsOfAmounts(need), time);
  if (denial !== undefined) return denial;
  const { remaining, limit } = remainingQuota(charged, limits);
  return mapAmounts((key) => {
    if (need[key] <= 0) return 0;
    const planned = Number.isFinite(limit[key]) ? limit[key] / LIMIT_DIVISOR : UNLIMITED_ALLOCATION[key];
    const maximum = Math.min(planned, MAX_ALLOCATION[key], remaining[key] / REMAINING_DIVISOR);
    return Math.max(need[key], Math.floor(maximum));
  });
}

/** Start of the hour that contains `time`. */
export function hourStart(time: number): number {
  return windowStart('hour', time);
}
