import { TemperError } from '../lib/errors.ts';
import type { Amounts, Denial } from './port.ts';
import { amountOf, quantityText, QUOTAS, UNIT_NAMES } from './quotas.ts';

/** The error of a call that would need `maximum` and was denied. */
export function quotaExceeded(denial: Denial, maximum: Amounts): TemperError {
  const { quota, used, limit, resumesAt } = denial;
  const field = quota.slice(quota.lastIndexOf('.') + 1);
  const unit = QUOTAS.find((rule) => rule.field === field)?.unit ?? 'tokens';
  const text = (amount: number): string => quantityText(unit, amount);
  const usage = `${text(used)} of ${text(limit)} ${UNIT_NAMES[unit]} allowed by ${quota} are used`;
  return new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${usage}, and this call may need ${text(amountOf(unit, maximum))}; resumes ${resumesAt}; raise the quota to continue now`,
    { details: { quota, used, limit, resumesAt } },
  );
}
