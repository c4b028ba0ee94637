import { isJsonObject, type Json } from '../lib/json.ts';
import type { Amounts, Denial } from './port.ts';
import { amountOf, QUOTAS, type QuotaLimits, type QuotaUnit } from './quotas.ts';
import { nextWindow, type WindowKind, WINDOWS, windowStart } from './windows.ts';

export type Counts = Required<Amounts>;

interface WindowCounts {
  start: number;
  counts: Counts;
}

/** Counters of one account: the current window of each kind. */
export type Account = Record<WindowKind, WindowCounts>;

export function toCounts(amounts: Amounts): Counts {
  const { inputTokens = 0, outputTokens = 0, costMicros = 0, toolCalls = 0, networkBytes = 0 } = amounts;
  return { inputTokens, outputTokens, costMicros, toolCalls, networkBytes };
}

export function emptyAccount(): Account {
  const window = (): WindowCounts => ({ start: 0, counts: toCounts({}) });
  return { minute: window(), hour: window(), day: window(), month: window() };
}

/** Starts the windows that contain `time`, with empty counters. A clock that is set back does not restart a window. */
export function rollAccount(account: Account, time: number): void {
  for (const kind of WINDOWS) {
    const start = windowStart(kind, time);
    if (start > account[kind].start) account[kind] = { start, counts: toCounts({}) };
  }
}

/**
 * Adds `counts` to the windows that contain `time` and have not ended. `sign` -1 subtracts.
 * The account must have been rolled to `time` or later.
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

/** The quota that `counts` would exceed, if there is one. Of several, the quota that resumes last. */
export function checkQuota(
  account: Account,
  limits: QuotaLimits,
  prefix: string,
  counts: Counts,
  time: number,
): Denial | undefined {
  let denial: Denial | undefined;
  for (const quota of QUOTAS) {
    const limit = limits[quota.limit];
    const wanted = amountOf(quota.unit, counts);
    if (limit === undefined || wanted <= 0) continue;
    const used = amountOf(quota.unit, account[quota.window].counts);
    if (used + wanted <= limit) continue;
    const resumesAt = new Date(nextWindow(quota.window, Math.max(time, account[quota.window].start))).toISOString();
    if (denial === undefined || resumesAt > denial.resumesAt) {
      denial = { granted: false, quota: `${prefix}${quota.field}`, limit, used, resumesAt };
    }
  }
  return denial;
}

/** Amounts with a quota. Input and output tokens share one quota. */
interface LimitedAmounts {
  tokens: number;
  costMicros: number;
  networkBytes: number;
}

const LIMITED_AMOUNTS: Readonly<Partial<Record<QuotaUnit, keyof LimitedAmounts>>> = {
  tokens: 'tokens',
  micros: 'costMicros',
  bytes: 'networkBytes',
};

/** For each amount: the smallest limit, and the smallest remaining quota. Infinity without a limit. */
export function remainingQuota(
  account: Account,
  limits: QuotaLimits,
): { limit: LimitedAmounts; remaining: LimitedAmounts } {
  const unlimited = (): LimitedAmounts => ({ tokens: Infinity, costMicros: Infinity, networkBytes: Infinity });
  const limit = unlimited();
  const remaining = unlimited();
  for (const quota of QUOTAS) {
    const key = LIMITED_AMOUNTS[quota.unit];
    const maximum = limits[quota.limit];
    if (key === undefined || maximum === undefined) continue;
    limit[key] = Math.min(limit[key], maximum);
    remaining[key] = Math.min(
      remaining[key],
      Math.max(0, maximum - amountOf(quota.unit, account[quota.window].counts)),
    );
  }
  return { limit, remaining };
}

/** Parses a stored account; undefined when the value is not a valid account. */
export function parseAccount(value: Json | undefined): Account | undefined {
  if (!isJsonObject(value)) return undefined;
  const account = emptyAccount();
  for (const kind of WINDOWS) {
    const window = value[kind];
    if (!isJsonObject(window) || typeof window.start !== 'number' || !isJsonObject(window.counts)) return undefined;
    const counts = parseCounts(window.counts);
    if (counts === undefined) return undefined;
    account[kind] = { start: window.start, counts };
  }
  return account;
}

/** Parses stored amounts; undefined when the value is not valid. */
export function parseCounts(value: Json | undefined): Counts | undefined {
  if (!isJsonObject(value)) return undefined;
  const counts = toCounts({});
  for (const key of Object.keys(counts) as (keyof Counts)[]) {
    const count = value[key];
    if (typeof count !== 'number' || !Number.isFinite(count) || count < 0) return undefined;
    counts[key] = count;
  }
  return counts;
}
