import { parseDecimalMicros, parseQuantityBytes } from '../api/quantities.ts';
import type { QuotaLimits } from '../ledger/quotas.ts';

/** The quotas of an Agent or a TrustPolicy in manifest form. */
interface QuotaSpec {
  tokensPerHour?: number;
  tokensPerDay?: number;
  costPerHour?: string;
  costPerDay?: string;
  costPerMonth?: string;
  toolCallsPerMinute?: number;
  networkBytesPerHour?: string;
}

/** Converts the `quotas` of a spec into ledger limits. Throws TEMPER_MANIFEST_INVALID for a malformed amount. */
export function quotaLimits(quotas: QuotaSpec = {}): QuotaLimits {
  const limits: QuotaLimits = {};
  const { tokensPerHour, tokensPerDay, toolCallsPerMinute } = quotas;
  if (tokensPerHour !== undefined) limits.tokensPerHour = tokensPerHour;
  if (tokensPerDay !== undefined) limits.tokensPerDay = tokensPerDay;
  if (toolCallsPerMinute !== undefined) limits.toolCallsPerMinute = toolCallsPerMinute;
  if (quotas.costPerHour !== undefined) limits.costMicrosPerHour = parseDecimalMicros(quotas.costPerHour);
  if (quotas.costPerDay !== undefined) limits.costMicrosPerDay = parseDecimalMicros(quotas.costPerDay);
  if (quotas.costPerMonth !== undefined) limits.costMicrosPerMonth = parseDecimalMicros(quotas.costPerMonth);
  if (quotas.networkBytesPerHour !== undefined) {
    limits.networkBytesPerHour = parseQuantityBytes(quotas.networkBytesPerHour);
  }
  return limits;
}
