import type { TokenUsage } from './port.ts';

/** US dollars for one million tokens. */
export interface ModelPrice {
  inputPrice: number;
  outputPrice: number;
  /** Input that the provider reads from its prompt cache; by default as other input, so that a budget is never overrun for want of a discount. */
  cachedInputPrice?: number;
  /** Input that the provider stores in its prompt cache; by default as other input. */
  cacheCreationPrice?: number;
}

/** Price of a model without a configured price. */
export const DEFAULT_PRICE = { inputPrice: 1, outputPrice: 3 } as const satisfies ModelPrice;

/** The tokens of which the cost consists. */
export type PricedTokens = Pick<TokenUsage, 'inputTokens' | 'outputTokens'> & Partial<TokenUsage>;

/**
 * Cost of an answer in millionths of a dollar, rounded up: a price per million tokens is the price of one token in millionths. Counts of cached
 * input beyond the input have no effect.
 */
export function costInMicros(
  { inputPrice, outputPrice, cachedInputPrice = inputPrice, cacheCreationPrice = inputPrice }: ModelPrice,
  { inputTokens, outputTokens, cachedInputTokens = 0, cacheCreationInputTokens = 0 }: PricedTokens,
): number {
  const created = Math.min(inputTokens, cacheCreationInputTokens);
  const cached = Math.min(inputTokens - created, cachedInputTokens);
  const input =
    (inputTokens - created - cached) * inputPrice + created * cacheCreationPrice + cached * cachedInputPrice;
  return Math.ceil(input + outputTokens * outputPrice);
}
