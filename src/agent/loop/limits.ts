import { DEFAULT_OUTPUT_TOKENS } from '../../api/limits/output-tokens.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { MessageSource } from '../../bus/port.ts';

export interface LoopLimits {
  /** Model turns with tool calls per message. One closing turn may follow. */
  turns: number;
  /** Tool calls per message. */
  steps: number;
  /** Maximum characters of one tool result. */
  outputCharacters: number;
  maxOutputTokens: number;
  /** Timeout of one model call in milliseconds. */
  modelTimeoutMs: number;
}

/** How often a truncated answer is continued. */
export const MAX_CONTINUATIONS = 3;

/** A run of the schedule, and the message of a trigger, may have their own limit of tool calls. */
export function loopLimits(spec: AgentSpec, source: MessageSource = 'User'): LoopLimits {
  const perRun = source === 'Schedule' || source === 'Trigger' ? spec.schedule?.maxActionsPerRun : undefined;
  return {
    turns: spec.limits?.turns ?? 30,
    steps: perRun ?? spec.limits?.steps ?? 30,
    outputCharacters: spec.limits?.outputCharacters ?? 50_000,
    maxOutputTokens: spec.model.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS,
    modelTimeoutMs: 300_000,
  };
}
