/** The error codes of the agent loop, a part of `ERROR_CODES`. */
export const LOOP_ERROR_CODES = {
  TEMPER_TURN_LIMIT: {
    meaning: 'The agent used all its model turns for one message.',
    fix: 'Ask for less at once, or raise the limit.',
  },
  TEMPER_STEP_LIMIT: {
    meaning: 'The agent used all its tool calls for one message.',
    fix: 'Ask for less at once, or raise the limit.',
  },
  TEMPER_HOOK_DENIED: {
    meaning: 'A hook of the agent (`spec.hooks`) refused the tool call, or failed and so refused it.',
    fix: 'Change the call as the reason says; if the hook failed, correct its tool, or set `onFailure: Ignore`.',
  },
  TEMPER_HOOK_FAILED: {
    meaning: 'A hook of the agent (`spec.hooks`) failed, is not available or gave no valid directive.',
    fix: 'Correct its tool, or set `onFailure: Ignore` for it.',
  },
} as const;
