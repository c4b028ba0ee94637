import type { Account } from './account.ts';
import { amountOf, quantityText, type QuotaLimits, QUOTAS, type QuotaUnit, UNIT_NAMES } from './quotas.ts';
import { nextWindow } from './windows.ts';

/** The share of a quota from which it counts as nearly used. */
const NEARLY_USED_PERCENT = 80;
/** Not calls per minute, whose window ends before a user reads of it, and not bytes, which nothing charges yet. */
const UNITS: readonly QuotaUnit[] = ['tokens', 'micros'];

/** How much of a quota is used or reserved. */
export interface QuotaUse {
  /** The field of the quota, e.g. `tokensPerHour`. */
  readonly field: string;
  /** Whole percent, rounded down. */
  readonly percent: number;
  /** `100,000 tokens allowed by spec.quotas.tokensPerHour`. */
  readonly allowed: string;
  /** End of the window. RFC 3339. */
  readonly resumesAt: string;
}

/** The use of each quota of tokens and money, in the windows of the account. Pure. */
export function quotaUses(account: Account, limits: QuotaLimits, prefix: string, time: number): QuotaUse[] {
  return QUOTAS.flatMap(({ unit, window, limit: name, field }) => {
    const limit = limits[name];
    if (!UNITS.includes(unit) || limit === undefined || limit <= 0) return [];
    const { start, counts } = account[window];
    const percent = Math.floor((amountOf(unit, counts) * 100) / limit);
    const allowed = `${quantityText(unit, limit)} ${UNIT_NAMES[unit]} allowed by ${prefix}${field}`;
    return [{ field, percent, allowed, resumesAt: new Date(nextWindow(window, Math.max(time, start))).toISOString() }];
  });
}

export function isNearlyUsed({ percent }: QuotaUse): boolean {
  return percent >= NEARLY_USED_PERCENT;
}

/** The same text until the window ends. */
export function nearlyUsedText({ allowed, resumesAt }: QuotaUse): string {
  return `at least ${NEARLY_USED_PERCENT} % of the ${allowed} are used; the window ends ${resumesAt.slice(0, 16)}Z`;
}
