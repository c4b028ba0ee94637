import {
  type Account,
  accountFrom,
  chargeAccount,
  type Counts,
  countsOf,
  deniedBy,
  openAccount,
  type QuotaLimits,
  roomIn,
  rollAccount,
} from '../ledger/account.ts';
import type { Denial } from '../ledger/port.ts';
import { WINDOWS, windowStart } from '../ledger/windows.ts';
import { isJsonObject, type Json } from '../lib/json.ts';

/** Amounts that are allocated to a gateway. Input and output tokens share one limit, so they are allocated together. */
export interface Held {
  tokens: number;
  costMicros: number;
  networkBytes: number;
}

/** The counters of one account, shared by all gateways. The charge is `spent` plus `held`. */
export interface LedgerDocument {
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
  block?: Block;
}

/** One change by one gateway, complete before it is written. */
export interface LedgerChange {
  writer: string;
  /** Increases with each change of this writer. */
  seq: number;
  /** Milliseconds since the epoch, by the writer's clock. */
  time: number;
  /** Spend to commit and amounts to release, per allocation. */
  settled: readonly SettledPart[];
  /** A request for a new allocation. */
  wanted?: AllocationRequest;
}

export interface SettledPart {
  epoch: string;
  time: number;
  released: Held;
  spent: Counts;
}

interface AllocationRequest {
  /** Minimum amounts. */
  need: Held;
  limits: QuotaLimits;
  prefix: string;
}

export interface Block extends Held {
  /** Milliseconds since the epoch, within the hour that it is charged to. */
  time: number;
}

const WRITER_RETENTION_MS = 3_600_000;
/** One allocation is at most 1/64 of the limit and 1/8 of the remaining amount, unless the request needs more. */
const LIMIT_DIVISOR = 64;
const REMAINING_DIVISOR = 8;
/** Largest allocation under a limit, and size of an allocation without one. Bounds what stays charged after a gateway crash. */
const MAX_ALLOCATION: Held = { tokens: 200_000, costMicros: 1_000_000, networkBytes: 64 * 1_024 * 1_024 };
const UNLIMITED_ALLOCATION: Held = { tokens: 20_000, costMicros: 50_000, networkBytes: 1_024 * 1_024 };

export const NOTHING_HELD: Held = { tokens: 0, costMicros: 0, networkBytes: 0 };

export function heldOf(counts: Counts): Held {
  const { inputTokens, outputTokens, costMicros, networkBytes } = counts;
  return { tokens: inputTokens + outputTokens, costMicros, networkBytes };
}

export function eachHeld(value: (key: keyof Held) => number): Held {
  return { tokens: value('tokens'), costMicros: value('costMicros'), networkBytes: value('networkBytes') };
}

function countsOfAmounts({ tokens, costMicros, networkBytes }: Held): Counts {
  return countsOf({ inputTokens: tokens, costMicros, networkBytes });
}

/** Spend of an account in one window as last copied elsewhere, such as into a status. A new record starts with it. */
export interface OpeningWindow {
  window: 'hour' | 'day' | 'month';
  /** Milliseconds since the epoch. */
  start: number;
  spent: Counts;
}

/** A new record, for an account without one (new, or lost with the store). Starts with the given spend of the windows that have not ended. */
export function newDocument(epoch: string, opening: readonly OpeningWindow[], time: number): LedgerDocument {
  const spent = openAccount();
  rollAccount(spent, time);
  for (const { window, start, spent: counts } of opening) {
    if (start >= spent[window].start) spent[window] = { start, counts };
  }
  const held = openAccount();
  rollAccount(held, Math.max(time, spent.hour.start));
  return { epoch, spent, held, writers: {} };
}

/** Undefined for a value that is not a valid record. */
export function documentFrom(value: Json | undefined): LedgerDocument | undefined {
  if (!isJsonObject(value) || typeof value['epoch'] !== 'string' || !isJsonObject(value['writers'])) return undefined;
  const spent = accountFrom(value['spent']);
  const held = accountFrom(value['held']);
  if (spent === undefined || held === undefined) return undefined;
  const writers: LedgerDocument['writers'] = {};
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
  return { ...last, block: { ...eachHeld(amount), time: amount('time') } };
}

/** The writer's last change if the record already contains this `seq`: the response to an earlier write was lost. */
export function appliedChange(
  document: LedgerDocument,
  { writer, seq }: Pick<LedgerChange, 'writer' | 'seq'>,
): LastChange | undefined {
  const last = document.writers[writer];
  return last !== undefined && last.seq >= seq ? last : undefined;
}

/** Total charges in the windows that contain `time`: `spent` plus `held`. */
export function chargedAt(document: LedgerDocument, time: number): Account {
  const { spent, held } = rolled(document, time);
  const charged = structuredClone(spent);
  for (const kind of WINDOWS) {
    const { counts } = charged[kind];
    for (const key of Object.keys(counts) as (keyof Counts)[]) counts[key] += held[kind].counts[key];
  }
  return charged;
}

/** The record with the windows that contain `time`, or with later windows if another gateway's clock is ahead and has started them. */
export function rolled(document: LedgerDocument, time: number): LedgerDocument {
  const next = structuredClone(document);
  rollAccount(next.spent, effectiveTime(document, time));
  rollAccount(next.held, effectiveTime(document, time));
  return next;
}

/** A gateway whose clock is behind charges the hour that others have started: for all gateways the previous hour has ended. */
function effectiveTime({ spent, held }: LedgerDocument, time: number): number {
  return Math.max(time, spent.hour.start, held.hour.start);
}

/** Pure: the record after a change, and the new allocation. After a denial the commits of the change must be part of the next change. */
export function applyChange(
  document: LedgerDocument,
  change: LedgerChange,
): { next: LedgerDocument; block?: Block } | { denial: Denial } {
  const next = rolled(document, change.time);
  for (const part of change.settled) {
    chargeAccount(next.spent, part.time, part.spent, 1);
    // A record that was lost and created again does not contain earlier allocations.
    if (part.epoch === next.epoch) chargeAccount(next.held, part.time, countsOfAmounts(part.released), -1);
  }
  const { seq } = change;
  next.writers = { ...recentWriters(next, change.time), [change.writer]: { seq, time: change.time } };
  if (change.wanted === undefined) return { next };
  const time = effectiveTime(next, change.time);
  const allocated = allocate(next, change.wanted, time);
  if ('granted' in allocated) return { denial: allocated };
  chargeAccount(next.held, time, countsOfAmounts(allocated), 1);
  const block = { ...allocated, time };
  next.writers[change.writer] = { seq, time: change.time, block };
  return { next, block };
}

function recentWriters({ writers }: LedgerDocument, time: number): LedgerDocument['writers'] {
  return Object.fromEntries(Object.entries(writers).filter(([, last]) => last.time > time - WRITER_RETENTION_MS));
}

function allocate(document: LedgerDocument, { need, limits, prefix }: AllocationRequest, time: number): Held | Denial {
  const charged = chargedAt(document, time);
  const denial = deniedBy(charged, limits, prefix, countsOfAmounts(need), time);
  if (denial !== undefined) return denial;
  const { room, limit } = roomIn(charged, limits);
  return eachHeld((key) => {
    if (need[key] <= 0) return 0;
    const planned = Number.isFinite(limit[key]) ? limit[key] / LIMIT_DIVISOR : UNLIMITED_ALLOCATION[key];
    const maximum = Math.min(planned, MAX_ALLOCATION[key], room[key] / REMAINING_DIVISOR);
    return Math.max(need[key], Math.floor(maximum));
  });
}

/** Start of the hour that contains `time`. */
export function hourOf(time: number): number {
  return windowStart('hour', time);
}
