/** The hooks of one agent. */
export const MAX_HOOKS = 8;
