import { loopLimits } from '../../agent/loop/limits.ts';
import { quotaLimits } from '../../agent/quotas.ts';
import { type Account, type Counts, toCounts, checkQuota } from '../../ledger/account.ts';
import { isNearlyUsed, nearlyUsedText, quotaUses } from '../../ledger/nearly-used.ts';
import type { Denial } from '../../ledger/port.ts';
import {
  amountOf,
  quantityText,
  type QuotaLimits,
  type QuotaRule,
  QUOTAS,
  type QuotaUnit,
  UNIT_NAMES,
} from '../../ledger/quotas.ts';
import type { WindowKind } from '../../ledger/windows.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';

export interface BudgetAccounts {
  readonly own: { spent: Account; charged: Account } | undefined;
  readonly policy: { charged: Account } | undefined;
}

interface QuotaCondition {
  readonly reason: 'TokenQuotaExceeded' | 'CostQuotaExceeded';
  /** Unit of the short form in a status. */
  readonly symbol: string;
  /** The minimum remaining amount. Below it the quota counts as exhausted. */
  readonly need: (limit: number, answer: number) => Counts;
}

/** The need of the next call is unknown, so a quota counts as exhausted when less than 1 % remains. */
const onePercent = (limit: number): number => Math.max(1, Math.ceil(limit / 100));

/** Without calls per minute, whose window ends before the status would be written, and without network bytes, which nothing charges yet. */
const CONDITIONS: Readonly<Partial<Record<QuotaUnit, QuotaCondition>>> = {
  tokens: {
    reason: 'TokenQuotaExceeded',
    symbol: 'tok',
    need: (_limit, answer) => toCounts({ outputTokens: answer }),
  },
  micros: {
    reason: 'CostQuotaExceeded',
    symbol: '$',
    need: (limit) => toCounts({ costMicros: onePercent(limit) }),
  },
};
const WINDOW_SYMBOLS: Readonly<Record<WindowKind, string>> = { minute: 'min', hour: 'h', day: 'd', month: 'month' };

/** The exhausted quota of the agent or of its policy: fewer tokens remain than one response may use. Of several, the one that resumes last. Pure. */
export function exhaustedBudget(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  { own, policy: shared }: BudgetAccounts,
  time: number,
): ConditionUpdate<'BudgetAvailable'> | undefined {
  const answer = loopLimits(agent.spec).maxOutputTokens;
  const ownQuota = own && exhaustedQuota(own.charged, limitsOf(agent.spec.quotas), 'spec.quotas.', { answer, time });
  const prefix = `TrustPolicy "${policy?.metadata.name}" spec.quotas.`;
  const sharedQuota = shared && exhaustedQuota(shared.charged, limitsOf(policy?.spec.quotas), prefix, { answer, time });
  const found = [ownQuota, sharedQuota]
    .filter((each) => each !== undefined)
    .sort(byResumption)
    .at(-1);
  if (found === undefined) return undefined;
  const { rule, condition, denial } = found;
  const allowed = `${quantityText(rule.unit, denial.limit)} ${UNIT_NAMES[rule.unit]} allowed by ${denial.quota}`;
  const message = `less than one response may use remains of the ${allowed}; resumes ${denial.resumesAt.slice(0, 16)}Z; raise the quota to continue now`;
  return { type: 'BudgetAvailable', status: 'False', reason: condition.reason, message };
}

/** The quota of the agent or of its policy of which at least 80 % is used or reserved. Of several, the one that resumes last. Pure. */
export function nearlyUsedBudget(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  { own, policy: shared }: BudgetAccounts,
  time: number,
): ConditionUpdate<'BudgetAvailable'> | undefined {
  const prefix = `TrustPolicy "${policy?.metadata.name}" spec.quotas.`;
  const found = [
    ...(own === undefined ? [] : quotaUses(own.charged, limitsOf(agent.spec.quotas), 'spec.quotas.', time)),
    ...(shared === undefined ? [] : quotaUses(shared.charged, limitsOf(policy?.spec.quotas), prefix, time)),
  ];
  const last = found
    .filter(isNearlyUsed)
    .sort((one, other) => (one.resumesAt < other.resumesAt ? -1 : 1))
    .at(-1);
  if (last === undefined) return undefined;
  // The same text until the window ends, so that more spend writes no status.
  return { type: 'BudgetAvailable', status: 'True', reason: 'QuotaNearlyUsed', message: nearlyUsedText(last) };
}

export function withinBudget(): ConditionUpdate<'BudgetAvailable'> {
  return { type: 'BudgetAvailable', status: 'True', reason: 'WithinBudget', message: 'no quota is exhausted' };
}

/**
 * The agent's own quota with the highest usage, in whole percent, so that small changes cause no status write. Without quotas the
 * tokens of the day; undefined when the agent used none yet.
 */
export function budgetSummary(agent: StoredAgent, { own }: BudgetAccounts): string | undefined {
  let highest: { percent: number; text: string } | undefined;
  const limits = limitsOf(agent.spec.quotas);
  for (const { limit: name, unit, window } of QUOTAS) {
    const limit = limits[name];
    const symbol = CONDITIONS[unit]?.symbol;
    if (symbol === undefined || limit === undefined || limit <= 0) continue;
    const used = own === undefined ? 0 : amountOf(unit, own.spent[window].counts);
    const percent = Math.min(999, Math.floor((used * 100) / limit));
    const size = unit === 'micros' ? String(limit / 1_000_000) : short(limit);
    if (highest === undefined || percent > highest.percent)
      highest = { percent, text: `${percent}% of ${size} ${symbol}/${WINDOW_SYMBOLS[window]}` };
  }
  if (highest !== undefined) return highest.text;
  return own === undefined ? undefined : `${short(amountOf('tokens', own.spent.day.counts))} tokens today`;
}

interface ExhaustedQuota {
  readonly rule: QuotaRule;
  readonly condition: QuotaCondition;
  readonly denial: Denial;
}

function exhaustedQuota(
  charged: Account,
  limits: QuotaLimits,
  prefix: string,
  { answer, time }: { answer: number; time: number },
): ExhaustedQuota | undefined {
  const found = QUOTAS.flatMap((rule): ExhaustedQuota[] => {
    const condition = CONDITIONS[rule.unit];
    const limit = limits[rule.limit];
    if (condition === undefined || limit === undefined) return [];
    const denial = checkQuota(charged, { [rule.limit]: limit }, prefix, condition.need(limit, answer), time);
    return denial === undefined ? [] : [{ rule, condition, denial }];
  });
  return found.sort(byResumption).at(-1);
}

function byResumption(one: ExhaustedQuota, other: ExhaustedQuota): number {
  return one.denial.resumesAt < other.denial.resumesAt ? -1 : 1;
}

/** Unreadable quotas are ignored here; the Ready condition reports the invalid spec. */
function limitsOf(quotas: Parameters<typeof quotaLimits>[0]): QuotaLimits {
  try {
    return quotaLimits(quotas);
  } catch (error) {
    if (isTemperError(error)) return {};
    throw error;
  }
}

function short(limit: number): string {
  if (limit >= 1_000_000) return `${Math.round(limit / 100_000) / 10}M`;
  return limit >= 1_000 ? `${Math.round(limit / 100) / 10}k` : String(limit);
}
