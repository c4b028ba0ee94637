import type { AgentSpec } from '../api/v1alpha1/agent.ts';

export interface LoopLimits {
  /** Model turns that may call tools, for one message. One more may follow to close. */
  turns: number;
  /** Tool calls for one message. */
  steps: number;
  /** Characters of one tool result. */
  outputCharacters: number;
  maxOutputTokens: number;
  /** Milliseconds of one model call. */
  modelMilliseconds: number;
}

/** How often a cut answer is continued. */
export const MAXIMUM_CONTINUATIONS = 3;

export function loopLimits(spec: AgentSpec): LoopLimits {
  return {
    turns: spec.limits?.turns ?? 30,
    steps: spec.limits?.steps ?? 30,
    outputCharacters: spec.limits?.outputCharacters ?? 50_000,
    maxOutputTokens: spec.model.maxOutputTokens ?? 4_096,
    modelMilliseconds: 300_000,
  };
}
