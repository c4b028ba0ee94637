/** Maximum number of output tokens of one model response when `spec.model.maxOutputTokens` is absent. */
export const DEFAULT_OUTPUT_TOKENS = 4_096;
