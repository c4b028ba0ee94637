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
