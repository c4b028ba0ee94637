import { loopLimits } from '../../agent/limits.ts';
import { quotaLimits } from '../../agent/quotas.ts';
import { type Account, type Counts, countsOf, deniedBy, type QuotaLimits } from '../../ledger/account.ts';
import type { Denial } from '../../ledger/port.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Finding } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube-types.ts';

export interface Accounts {
  readonly own: { spent: Account; charged: Account } | undefined;
  readonly policy: { charged: Account } | undefined;
}

type Reason = 'TokenQuotaExceeded' | 'CostQuotaExceeded' | 'NetworkQuotaExceeded';

interface Quota {
  readonly reason: Reason;
  readonly window: 'hour' | 'day' | 'month';
  readonly unit: string;
  readonly amount: (counts: Counts) => number;
  /** What there must be room for, or the quota counts as used up. */
  readonly need: (limit: number, answer: number) => Counts;
  readonly show: (limit: number) => string;
}

const tokens = {
  reason: 'TokenQuotaExceeded',
  amount: ({ inputTokens, outputTokens }: Counts) => inputTokens + outputTokens,
  need: (_limit: number, answer: number) => countsOf({ outputTokens: answer }),
  show: (limit: number) => `${limit.toLocaleString('en-US')} tokens`,
} as const;
/** What a call costs only its provider knows. */
const hundredth = (limit: number): number => Math.max(1, Math.ceil(limit / 100));
const cost = {
  reason: 'CostQuotaExceeded',
  amount: ({ costMicros }: Counts) => costMicros,
  need: (limit: number) => countsOf({ costMicros: hundredth(limit) }),
  show: (limit: number) => `${limit / 1_000_000} dollars`,
} as const;

/** Calls of a minute are not among them: they are over before anybody reads of it. */
const QUOTAS: Readonly<Partial<Record<keyof QuotaLimits, Quota>>> = {
  tokensPerHour: { ...tokens, window: 'hour', unit: 'tok/h' },
  tokensPerDay: { ...tokens, window: 'day', unit: 'tok/d' },
  costMicrosPerHour: { ...cost, window: 'hour', unit: '$/h' },
  costMicrosPerDay: { ...cost, window: 'day', unit: '$/d' },
  costMicrosPerMonth: { ...cost, window: 'month', unit: '$/month' },
  networkBytesPerHour: {
    reason: 'NetworkQuotaExceeded',
    window: 'hour',
    unit: 'B/h',
    amount: ({ networkBytes }) => networkBytes,
    need: (limit) => countsOf({ networkBytes: hundredth(limit) }),
    show: (limit) => `${limit.toLocaleString('en-US')} bytes`,
  },
};

/** The quota that leaves no room for one more answer, of the agent or of its policy; nothing when all do. Pure. */
export function budgetProblem(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  { own, policy: shared }: Accounts,
  time: number,
): Finding<'BudgetAvailable'> | undefined {
  const answer = loopLimits(agent.spec).maxOutputTokens;
  const mine = own && usedUp(own.charged, limitsOf(agent.spec.quotas), 'spec.quotas.', { answer, time });
  const prefix = `TrustPolicy "${policy?.metadata.name}" spec.quotas.`;
  const theirs = shared && usedUp(shared.charged, limitsOf(policy?.spec.quotas), prefix, { answer, time });
  const found = [mine, theirs]
    .filter((each) => each !== undefined)
    .sort(byResumption)
    .at(-1);
  if (found === undefined) return undefined;
  const { quota, denial } = found;
  const allowed = `${quota.show(denial.limit)} that ${denial.quota} allows`;
  const message = `of the ${allowed}, less is left than one more answer may take; resumes ${denial.resumesAt.slice(0, 16)}Z; raise it to go on before`;
  return { type: 'BudgetAvailable', status: 'False', reason: quota.reason, message };
}

export function budgetFine(): Finding<'BudgetAvailable'> {
  return { type: 'BudgetAvailable', status: 'True', reason: 'WithinBudget', message: 'every quota has room' };
}

/** The agent's own quota that is used most, in whole percent, so that it is written only when it moved. Nothing without quotas. */
export function budgetSummary(agent: StoredAgent, { own }: Accounts): string | undefined {
  let most: { percent: number; text: string } | undefined;
  for (const [name, limit] of Object.entries(limitsOf(agent.spec.quotas))) {
    const quota = QUOTAS[name as keyof QuotaLimits];
    if (quota === undefined || limit <= 0) continue;
    const used = own === undefined ? 0 : quota.amount(own.spent[quota.window].counts);
    const percent = Math.min(999, Math.floor((used * 100) / limit));
    const size = quota.reason === 'CostQuotaExceeded' ? String(limit / 1_000_000) : short(limit);
    if (most === undefined || percent > most.percent) most = { percent, text: `${percent}% of ${size} ${quota.unit}` };
  }
  return most?.text;
}

interface UsedUp {
  readonly quota: Quota;
  readonly denial: Denial;
}

function usedUp(
  charged: Account,
  limits: QuotaLimits,
  prefix: string,
  { answer, time }: { answer: number; time: number },
): UsedUp | undefined {
  const found = (Object.keys(limits) as (keyof QuotaLimits)[]).flatMap((name): UsedUp[] => {
    const quota = QUOTAS[name];
    const limit = limits[name];
    if (quota === undefined || limit === undefined) return [];
    const denial = deniedBy(charged, { [name]: limit }, prefix, quota.need(limit, answer), time);
    return denial === undefined ? [] : [{ quota, denial }];
  });
  return found.sort(byResumption).at(-1);
}

function byResumption(one: UsedUp, other: UsedUp): number {
  return one.denial.resumesAt < other.denial.resumesAt ? -1 : 1;
}

/** Quotas that cannot be read are a fault of the spec, which says so elsewhere. */
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
