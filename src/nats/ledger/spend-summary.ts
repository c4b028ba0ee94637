import { parseDecimalMicros } from '../../api/quantities.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { toCounts } from '../../ledger/account.ts';
import { parseAccountRecord, type InitialSpendWindow, rollWindows } from './account-record.ts';
import { accountKey } from './account-key.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';

/** Spend in one window, in the format of a TrustPolicy's status. */
export interface SpendWindow {
  window: 'hour' | 'day' | 'month';
  /** RFC 3339. */
  start: string;
  inputTokens: number;
  outputTokens: number;
  /** US dollars, as decimal text. */
  cost: string;
  toolCalls: number;
  networkBytes: number;
}

export function agentAccount(agentUid: string): string {
  return `agent/${agentUid}`;
}

export function policyAccount(policyUid: string): string {
  return `policy/${policyUid}`;
}

/**
 * Committed spend of an account, read directly from the bucket. Undefined when the account has no record: the caller then keeps the
 * spend in the status, from which a new record starts. Throws TEMPER_BUS_*.
 */
export async function spendSummary(
  store: DocumentStore,
  clock: Clock,
  account: string,
): Promise<SpendWindow[] | undefined> {
  const stored = await store.get(accountKey(account));
  const document = stored === undefined ? undefined : parseAccountRecord(stored.value);
  if (document === undefined) return undefined;
  const { spent } = rollWindows(document, clock.now().getTime());
  return (['hour', 'day', 'month'] as const).map((window) => {
    const { start, counts } = spent[window];
    const { costMicros, ...amounts } = counts;
    return { window, start: new Date(start).toISOString(), ...amounts, cost: decimalOf(costMicros) };
  });
}

/** The spend that a new record starts with, from the status of a policy. Ignores windows that cannot be parsed. */
export function initialSpendFrom(spend: readonly SpendWindow[] = []): InitialSpendWindow[] {
  return spend.flatMap(({ window, start, cost, ...amounts }) => {
    const time = Date.parse(start);
    if (Number.isNaN(time)) return [];
    return [{ window, start: time, spent: toCounts({ ...amounts, costMicros: microsOf(cost) }) }];
  });
}

function microsOf(cost: string): number {
  try {
    return parseDecimalMicros(cost);
  } catch (error) {
    if (isTemperError(error)) return 0;
    throw error;
  }
}

/** Micro-units as decimal text, without trailing zeros. */
function decimalOf(micros: number): string {
  const whole = Math.floor(micros / 1_000_000);
  const rest = String(micros % 1_000_000)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return rest === '' ? String(whole) : `${whole}.${rest}`;
}
