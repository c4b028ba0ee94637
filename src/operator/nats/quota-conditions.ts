import { loopLimits } from '../../agent/loop/limits.ts';
import { quotaLimits } from '../../agent/quotas.ts';
import { type Account, type Counts, toCounts, checkQuota, type QuotaLimits } from '../../ledger/account.ts';
import type { Denial } from '../../ledger/port.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';

export interface BudgetAccounts {
  readonly own: { spent: Account; charged: Account } | undefined;
  readonly policy: { charged: Account } | undefined;
}

type Reason = 'TokenQuotaExceeded' | 'CostQuotaExceeded';

interface QuotaCondition {
  readonly reason: Reason;
  readonly window: 'hour' | 'day' | 'month';
  readonly unit: string;
  readonly amount: (counts: Counts) => number;
  /** The minimum remaining amount. Below it the quota counts as exhausted. */
  readonly need: (limit: number, answer: number) => Counts;
  readonly show: (limit: number) => string;
}

const tokens = {
  reason: 'TokenQuotaExceeded',
  amount: ({ inputTokens, outputTokens }: Counts) => inputTokens + outputTokens,
  need: (_limit: number, answer: number) => toCounts({ outputTokens: answer }),
  show: (limit: number) => `${limit.toLocaleString('en-US')} tokens`,
} as const;
/** The cost of the next call is unknown, so a quota counts as exhausted when less than 1 % remains. */
const onePercent = (limit: number): number => Math.max(1, Math.ceil(limit / 100));
const cost = {
  reason: 'CostQuotaExceeded',
  amount: ({ costMicros }: Counts) => costMicros,
  need: (limit: number) => toCounts({ costMicros: onePercent(limit) }),
  show: (limit: number) => `${limit / 1_000_000} dollars`,
} as const;

/** Without the quota of calls per minute, whose window ends before the status would be written, and without network bytes, which nothing charges yet. */
const QUOTAS: Readonly<Partial<Record<keyof QuotaLimits, QuotaCondition>>> = {
  tokensPerHour: { ...tokens, window: 'hour', unit: 'tok/h' },
  tokensPerDay: { ...tokens, window: 'day', unit: 'tok/d' },
  costMicrosPerHour: { ...cost, window: 'hour', unit: '$/h' },
  costMicrosPerDay: { ...cost, window: 'day', unit: '$/d' },
  costMicrosPerMonth: { ...cost, window: 'month', unit: '$/month' },
};

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
  const { quota, denial } = found;
  const allowed = `${quota.show(denial.limit)} allowed by ${denial.quota}`;
  const message = `less than one response may use remains of the ${allowed}; resumes ${denial.resumesAt.slice(0, 16)}Z; raise the quota to continue now`;
  return { type: 'BudgetAvailable', status: 'False', reason: quota.reason, message };
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
  for (const [name, limit] of Object.entries(limitsOf(agent.spec.quotas))) {
    const quota = QUOTAS[name as keyof QuotaLimits];
    if (quota === undefined || limit <= 0) continue;
    const used = own === undefined ? 0 : quota.amount(own.spent[quota.window].counts);
    const percent = Math.min(999, Math.floor((used * 100) / limit));
    const size = quota.reason === 'CostQuotaExceeded' ? String(limit / 1_000_000) : short(limit);
    if (highest === undefined || percent > highest.percent)
      highest = { percent, text: `${percent}% of ${size} ${quota.unit}` };
  }
  if (highest !== undefined) return highest.text;
  return own === undefined ? undefined : `${short(tokens.amount(own.spent.day.counts))} tokens today`;
}

interface ExhaustedQuota {
  readonly quota: QuotaCondition;
  readonly denial: Denial;
}

function exhaustedQuota(
  charged: Account,
  limits: QuotaLimits,
  prefix: string,
  { answer, time }: { answer: number; time: number },
): ExhaustedQuota | undefined {
  const found = (Object.keys(limits) as (keyof QuotaLimits)[]).flatMap((name): ExhaustedQuota[] => {
    const quota = QUOTAS[name];
    const limit = limits[name];
    if (quota === undefined || limit === undefined) return [];
    const denial = checkQuota(charged, { [name]: limit }, prefix, quota.need(limit, answer), time);
    return denial === undefined ? [] : [{ quota, denial }];
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
