/** Price of a model in micro-units of the account's currency for a million tokens: 150,000 is 0.15. */
export interface ModelRates {
  inputMicros: number;
  outputMicros: number;
}

/** For a model nobody gave a price: 1 and 3 units for a million tokens, so that a cost quota still ends something. */
const UNKNOWN_MODEL: ModelRates = { inputMicros: 1_000_000, outputMicros: 3_000_000 };

/** Cost in micro-units, rounded up. */
export function costMicros(
  rates: ModelRates = UNKNOWN_MODEL,
  usage: { inputTokens: number; outputTokens: number },
): number {
  return Math.ceil((usage.inputTokens * rates.inputMicros + usage.outputTokens * rates.outputMicros) / 1_000_000);
}
