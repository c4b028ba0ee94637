import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError } from '../lib/errors.ts';
import type { TokenUsage } from './port.ts';

/** US dollars for one million tokens. */
export interface ModelPrice {
  inputPrice: number;
  outputPrice: number;
}

/** Price of a model without a configured price. */
export const DEFAULT_PRICE: ModelPrice = { inputPrice: 1, outputPrice: 3 };

/**
 * Cost of an answer in millionths of a dollar, rounded up: a price per million tokens is the price of one token in
 * millionths. Cached input is charged as input, so that a budget is never overrun for want of a discount.
 */
export function costInMicros(price: ModelPrice, usage: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>): number {
  return Math.ceil(usage.inputTokens * price.inputPrice + usage.outputTokens * price.outputPrice);
}

/** The provider rejected the call before it did any work, and charges nothing. */
const FREE_CODES: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_RATE_LIMITED',
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_UNREACHABLE',
  'TEMPER_MODEL_UNAUTHORIZED',
  'TEMPER_MODEL_BILLING',
  'TEMPER_MODEL_CONTEXT_OVERFLOW',
  'TEMPER_MODEL_NOT_FOUND',
  'TEMPER_MODEL_UNAVAILABLE',
  'TEMPER_REPLAY_NO_MATCH',
] satisfies ErrorCode[]);

/** True if a call that failed with this error before its first event costs nothing. */
export function isFreeFailure(error: unknown): boolean {
  return isTemperError(error) && FREE_CODES.has(error.code);
}
