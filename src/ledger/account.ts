import { isJsonObject, type Json } from '../lib/json.ts';
import type { Amounts, Denial } from './port.ts';
import { nextWindow, type WindowKind, WINDOWS, windowStart } from './windows.ts';

/** What an agent or a policy may use. An absent limit is no limit; money in millionths. */
export interface QuotaLimits {
  tokensPerHour?: number;
  tokensPerDay?: number;
  costMicrosPerHour?: number;
  costMicrosPerDay?: number;
  costMicrosPerMonth?: number;
  toolCallsPerMinute?: number;
  networkBytesPerHour?: number;
}

export type Counts = Required<Amounts>;

interface Window {
  start: number;
  counts: Counts;
}

/** Counters of one account: the current window of each kind. */
export type Account = Record<WindowKind, Window>;

interface Quota {
  limit: keyof QuotaLimits;
  /** As manifests call it. */
  field: string;
  window: WindowKind;
  amount(counts: Counts): number;
}

const tokens = (counts: Counts): number => counts.inputTokens + counts.outputTokens;
const cost = (counts: Counts): number => counts.costMicros;

const QUOTAS: readonly Quota[] = [
  { limit: 'toolCallsPerMinute', field: 'toolCallsPerMinute', window: 'minute', amount: (counts) => counts.toolCalls },
  { limit: 'tokensPerHour', field: 'tokensPerHour', window: 'hour', amount: tokens },
  { limit: 'costMicrosPerHour', field: 'costPerHour', window: 'hour', amount: cost },
  {
    limit: 'networkBytesPerHour',
    field: 'networkBytesPerHour',
    window: 'hour',
    amount: (counts) => counts.networkBytes,
  },
  { limit: 'tokensPerDay', field: 'tokensPerDay', window: 'day', amount: tokens },
  { limit: 'costMicrosPerDay', field: 'costPerDay', window: 'day', amount: cost },
  { limit: 'costMicrosPerMonth', field: 'costPerMonth', window: 'month', amount: cost },
];

export function countsOf(amounts: Amounts): Counts {
  const { inputTokens = 0, outputTokens = 0, costMicros = 0, toolCalls = 0, networkBytes = 0 } = amounts;
  return { inputTokens, outputTokens, costMicros, toolCalls, networkBytes };
}

export function openAccount(): Account {
  const window = (): Window => ({ start: 0, counts: countsOf({}) });
  return { minute: window(), hour: window(), day: window(), month: window() };
}

/** Begins the windows that a moment lies in. A clock set back begins none anew. */
export function rollAccount(account: Account, time: number): void {
  for (const kind of WINDOWS) {
    const start = windowStart(kind, time);
    if (start > account[kind].start) account[kind] = { start, counts: countsOf({}) };
  }
}

/**
 * Adds to the windows that were current at `time`, and to none that has ended since. `sign` -1 takes back.
 * The account must be rolled to a moment not before `time`.
 */
export function chargeAccount(account: Account, time: number, counts: Counts, sign: 1 | -1): void {
  for (const kind of WINDOWS) {
    const window = account[kind];
    if (windowStart(kind, time) < window.start) continue;
    for (const key of Object.keys(counts) as (keyof Counts)[]) {
      window.counts[key] = Math.max(0, window.counts[key] + sign * counts[key]);
    }
  }
}

/** The quota that does not have room for `counts`, the one that opens last; nothing when there is room in all. */
export function deniedBy(
  account: Account,
  limits: QuotaLimits,
  prefix: string,
  counts: Counts,
  time: number,
): Denial | undefined {
  let denial: Denial | undefined;
  for (const quota of QUOTAS) {
    const limit = limits[quota.limit];
    const wanted = quota.amount(counts);
    if (limit === undefined || wanted <= 0) continue;
    const used = quota.amount(account[quota.window].counts);
    if (used + wanted <= limit) continue;
    const resumesAt = new Date(nextWindow(quota.window, Math.max(time, account[quota.window].start))).toISOString();
    if (denial === undefined || resumesAt > denial.resumesAt) {
      denial = { granted: false, quota: `${prefix}${quota.field}`, limit, used, resumesAt };
    }
  }
  return denial;
}

/** Amounts that quotas limit. Input and output tokens have one limit. */
interface Limited {
  tokens: number;
  costMicros: number;
  networkBytes: number;
}

const LIMITED: Readonly<Record<string, keyof Limited>> = {
  tokensPerHour: 'tokens',
  tokensPerDay: 'tokens',
  costMicrosPerHour: 'costMicros',
  costMicrosPerDay: 'costMicros',
  costMicrosPerMonth: 'costMicros',
  networkBytesPerHour: 'networkBytes',
};

/** The smallest limit of each amount, and what the tightest of them still has room for; infinite without any. */
export function roomIn(account: Account, limits: QuotaLimits): { limit: Limited; room: Limited } {
  const none = (): Limited => ({ tokens: Infinity, costMicros: Infinity, networkBytes: Infinity });
  const limit = none();
  const room = none();
  for (const quota of QUOTAS) {
    const key = LIMITED[quota.limit];
    const most = limits[quota.limit];
    if (key === undefined || most === undefined) continue;
    limit[key] = Math.min(limit[key], most);
    room[key] = Math.min(room[key], Math.max(0, most - quota.amount(account[quota.window].counts)));
  }
  return { limit, room };
}

/** An account as it was kept; nothing when the value is none. */
export function accountFrom(value: Json | undefined): Account | undefined {
  if (!isJsonObject(value)) return undefined;
  const account = openAccount();
  for (const kind of WINDOWS) {
    const window = value[kind];
    if (!isJsonObject(window) || typeof window.start !== 'number' || !isJsonObject(window.counts)) return undefined;
    const counts = countsFrom(window.counts);
    if (counts === undefined) return undefined;
    account[kind] = { start: window.start, counts };
  }
  return account;
}

/** Amounts as they were kept; nothing when the value is none. */
export function countsFrom(value: Json | undefined): Counts | undefined {
  if (!isJsonObject(value)) return undefined;
  const counts = countsOf({});
  for (const key of Object.keys(counts) as (keyof Counts)[]) {
    const count = value[key];
    if (typeof count !== 'number' || !Number.isFinite(count) || count < 0) return undefined;
    counts[key] = count;
  }
  return counts;
}
