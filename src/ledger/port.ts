import type { CallOptions } from '../lib/call-options.ts';

/** Counted amounts: tokens, calls and bytes as integers, cost in micro-units of the account's currency, so that sums are exact. */
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
  /** Start of the next window, when the quota permits calls again. RFC 3339. */
  resumesAt: string;
}

interface Usage {
  hour: Required<Amounts>;
  day: Required<Amounts>;
  month: Required<Amounts>;
}

/**
 * Quota accounting in two steps: reserve the maximum before an operation, settle the used amounts after it. A reservation that
 * is never settled stays charged in full, so spend is never under-counted, and over-counted by at most the reservations in flight.
 * Windows are UTC clock minutes, hours, days and months.
 */
export interface Ledger {
  /**
   * Charges `maximum` to all accounts, or to none of them: returns a Denial when it would exceed a quota. Idempotent: the same `op.key`
   * returns the same reservation until it is settled. Throws TEMPER_LEDGER_UNAVAILABLE when a shared ledger cannot be reached or
   * does not respond before `op.deadline`, and the error of the store when a local ledger cannot write. Nothing is reserved then.
   */
  reserve(maximum: Amounts, op: CallOptions): Promise<Reservation | Denial>;
  /**
   * Replaces the reserved amounts with the used ones, which may be larger. Idempotent: an unknown or already settled id has no
   * effect. Resolves before the change is durable, and does not throw: if the change is lost, the reservation stays charged in full.
   */
  commit(id: string, used: Amounts): Promise<void>;
  /**
   * The amounts charged in the current windows, including open reservations: of the first account where the ledger charges several.
   * Throws TEMPER_LEDGER_UNAVAILABLE when a shared ledger cannot be reached.
   */
  usage(): Promise<Usage>;
}
