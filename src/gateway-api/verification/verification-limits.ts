/** Re-runs, then rounds of the examination: what one round gives decides the inputs of the next. */
export const MAX_ROUNDS = 24;
