/** The files, and the memory keys, that the context of one agent names. */
export const MAX_CONTEXT_PARTS = 8;
