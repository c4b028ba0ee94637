import type { Op } from '../lib/operation.ts';

/** What is counted. Cost in micro-units of the account's currency, so that sums are exact. */
export interface Amounts {
  inputTokens?: number;
  outputTokens?: number;
  costMicros?: number;
  toolCalls?: number;
  networkBytes?: number;
}

export interface Reservation {
  granted: true;
  id: string;
}

export interface Denial {
  granted: false;
  /** The quota's field, e.g. `spec.quotas.tokensPerHour`. */
  quota: string;
  limit: number;
  used: number;
  /** When the window opens again, RFC 3339. */
  resumesAt: string;
}

interface Usage {
  hour: Required<Amounts>;
  day: Required<Amounts>;
  month: Required<Amounts>;
  /** Tool calls in the current minute. */
  minuteToolCalls: number;
}

/**
 * Reserve before, settle after. A reservation never settled is charged in full, so spend is never under-charged
 * and over-charged by at most what was in flight. Windows are UTC clock hours, days and months.
 */
export interface Ledger {
  reserve(maximum: Amounts, op: Op): Promise<Reservation | Denial>;
  settle(id: string, used: Amounts): Promise<void>;
  usage(): Promise<Usage>;
}
