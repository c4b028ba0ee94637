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

/** What blocks are made of. Input and output tokens have one limit, so they are leased together. */
export interface Held {
  tokens: number;
  costMicros: number;
  networkBytes: number;
}

/** The counters of one account, shared by all gateways. What is charged is `spent` and `held` together. */
export interface LedgerDocument {
  /** Unlike that of any other document there was under this key. */
  epoch: string;
  /** Settled, to the token. */
  spent: Account;
  /** Leased to gateways: in flight, set aside for what comes next, or lost with a gateway that crashed. */
  held: Account;
  /** The last change of each gateway, so that one whose answer was lost is not made twice. */
  writers: Record<string, LastChange>;
}

interface LastChange {
  seq: number;
  time: number;
  /** What it leased. */
  block?: Block;
}

/** One change by one gateway, decided before it is written. */
export interface LedgerChange {
  writer: string;
  /** Grows with each change of this writer. */
  seq: number;
  /** Milliseconds since the epoch, by the writer's clock. */
  time: number;
  /** What comes back, or is spent, out of blocks leased at `time` under `epoch`. */
  settled: readonly SettledPart[];
  /** A block wanted now. */
  wanted?: WantedBlock;
}

export interface SettledPart {
  epoch: string;
  time: number;
  released: Held;
  spent: Counts;
}

interface WantedBlock {
  /** At least this much. */
  need: Held;
  limits: QuotaLimits;
  prefix: string;
}

export interface Block extends Held {
  /** A moment of the hour it was charged to. */
  time: number;
}

const WRITERS_KEPT_MILLISECONDS = 3_600_000;
/** Of each limit at most this share lies in one block, and of the room that is left at most that. */
const SHARE_OF_LIMIT = 64;
const SHARE_OF_ROOM = 8;
/** Blocks of what has no limit, and the largest of what has one: a crash leaves no more than this charged for each gateway. */
const LARGEST_BLOCK: Held = { tokens: 200_000, costMicros: 1_000_000, networkBytes: 64 * 1_024 * 1_024 };
const UNLIMITED_BLOCK: Held = { tokens: 20_000, costMicros: 50_000, networkBytes: 1_024 * 1_024 };

export const NOTHING_HELD: Held = { tokens: 0, costMicros: 0, networkBytes: 0 };

export function heldOf(counts: Counts): Held {
  const { inputTokens, outputTokens, costMicros, networkBytes } = counts;
  return { tokens: inputTokens + outputTokens, costMicros, networkBytes };
}

export function eachHeld(value: (key: keyof Held) => number): Held {
  return { tokens: value('tokens'), costMicros: value('costMicros'), networkBytes: value('networkBytes') };
}

function countsOfHeld({ tokens, costMicros, networkBytes }: Held): Counts {
  return countsOf({ inputTokens: tokens, costMicros, networkBytes });
}

/** What an account had spent when that was last written down elsewhere. */
export interface OpeningWindow {
  window: 'hour' | 'day' | 'month';
  /** Milliseconds since the epoch. */
  start: number;
  spent: Counts;
}

/** Counters nobody has: new, or lost with the store. They begin with what is written elsewhere, of windows that are not over. */
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

/** Nothing when the value is no document. */
export function documentFrom(value: Json | undefined): LedgerDocument | undefined {
  if (!isJsonObject(value) || typeof value['epoch'] !== 'string' || !isJsonObject(value['writers'])) return undefined;
  const spent = accountFrom(value['spent']);
  const held = accountFrom(value['held']);
  if (spent === undefined || held === undefined) return undefined;
  const writers: LedgerDocument['writers'] = {};
  for (const [writer, last] of Object.entries(value['writers'])) {
    const found = lastChangeFrom(last);
    if (found === undefined) return undefined;
    writers[writer] = found;
  }
  return { epoch: value['epoch'], spent, held, writers };
}

function lastChangeFrom(value: Json): LastChange | undefined {
  if (!isJsonObject(value) || typeof value['seq'] !== 'number' || typeof value['time'] !== 'number') return undefined;
  const last: LastChange = { seq: value['seq'], time: value['time'] };
  const { block } = value;
  if (!isJsonObject(block)) return last;
  const amount = (key: string): number => (typeof block[key] === 'number' ? block[key] : 0);
  return { ...last, block: { ...eachHeld(amount), time: amount('time') } };
}

/** What the last change of this writer was, when it was this one: its answer may have been lost. */
export function appliedChange(
  document: LedgerDocument,
  { writer, seq }: Pick<LedgerChange, 'writer' | 'seq'>,
): LastChange | undefined {
  const last = document.writers[writer];
  return last !== undefined && last.seq >= seq ? last : undefined;
}

/** Everything charged in the windows that hold `time`: what is spent and what is held. */
export function chargedAt(document: LedgerDocument, time: number): Account {
  const { spent, held } = rolled(document, time);
  const charged = structuredClone(spent);
  for (const kind of WINDOWS) {
    const { counts } = charged[kind];
    for (const key of Object.keys(counts) as (keyof Counts)[]) counts[key] += held[kind].counts[key];
  }
  return charged;
}

/** The document with the windows that hold `time`, or with later ones when another gateway's clock has begun them. */
export function rolled(document: LedgerDocument, time: number): LedgerDocument {
  const next = structuredClone(document);
  rollAccount(next.spent, effectiveTime(document, time));
  rollAccount(next.held, effectiveTime(document, time));
  return next;
}

/** A clock that is behind charges the hour that others have begun: the last one is over for all. */
function effectiveTime({ spent, held }: LedgerDocument, time: number): number {
  return Math.max(time, spent.hour.start, held.hour.start);
}

/** Pure: the document after a change, and the block leased. A denial leaves what was settled to the next change. */
export function applyChange(
  document: LedgerDocument,
  change: LedgerChange,
): { next: LedgerDocument; block?: Block } | { denial: Denial } {
  const next = rolled(document, change.time);
  for (const part of change.settled) {
    chargeAccount(next.spent, part.time, part.spent, 1);
    // Counters that were lost and begun again know nothing of blocks leased before.
    if (part.epoch === next.epoch) chargeAccount(next.held, part.time, countsOfHeld(part.released), -1);
  }
  const { seq } = change;
  next.writers = { ...recentWriters(next, change.time), [change.writer]: { seq, time: change.time } };
  if (change.wanted === undefined) return { next };
  const time = effectiveTime(next, change.time);
  const leased = blockFor(next, change.wanted, time);
  if ('granted' in leased) return { denial: leased };
  chargeAccount(next.held, time, countsOfHeld(leased), 1);
  const block = { ...leased, time };
  next.writers[change.writer] = { seq, time: change.time, block };
  return { next, block };
}

function recentWriters({ writers }: LedgerDocument, time: number): LedgerDocument['writers'] {
  return Object.fromEntries(Object.entries(writers).filter(([, last]) => last.time > time - WRITERS_KEPT_MILLISECONDS));
}

function blockFor(document: LedgerDocument, { need, limits, prefix }: WantedBlock, time: number): Held | Denial {
  const charged = chargedAt(document, time);
  const denial = deniedBy(charged, limits, prefix, countsOfHeld(need), time);
  if (denial !== undefined) return denial;
  const { room, limit } = roomIn(charged, limits);
  return eachHeld((key) => {
    if (need[key] <= 0) return 0;
    const planned = Number.isFinite(limit[key]) ? limit[key] / SHARE_OF_LIMIT : UNLIMITED_BLOCK[key];
    const most = Math.min(planned, LARGEST_BLOCK[key], room[key] / SHARE_OF_ROOM);
    return Math.max(need[key], Math.floor(most));
  });
}

/** The hour a block or reservation belongs to. */
export function hourOf(time: number): number {
  return windowStart('hour', time);
}
