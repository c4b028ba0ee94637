/** The tools of one agent that have settings. */
export const MAX_TOOL_SETTINGS = 32;
