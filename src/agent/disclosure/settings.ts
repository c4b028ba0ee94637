import { DEFAULT_BODY_TOKENS, DEFAULT_INDEX_TOKENS, DEFAULT_UNLOAD_PERCENT } from '../../api/limits/disclosure.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { SkillBudget } from '../skills/loaded-skills.ts';

/** How an agent discloses its tools to its model. */
export interface DisclosureSettings {
  mode: 'Semantic' | 'Explore';
  indexTokens: number;
  bodyTokens: number;
  /** A share of the context window, from 0 to 1. */
  unloadShare: number;
}

/** How long the instructions of skills stay in the requests of an agent, whatever its mode is. */
export function skillBudget({ disclosure }: AgentSpec): SkillBudget {
  const { bodyTokens = DEFAULT_BODY_TOKENS, unloadPercent = DEFAULT_UNLOAD_PERCENT } = disclosure ?? {};
  return { bodyTokens, unloadShare: unloadPercent / 100 };
}

/** Undefined for an agent whose model always gets all tools. */
export function disclosureSettings({ disclosure, invocation, model }: AgentSpec): DisclosureSettings | undefined {
  const { mode = 'Inline', indexTokens, bodyTokens, unloadPercent } = disclosure ?? {};
  if (mode === 'Inline' || invocation === 'Code' || model.agent !== undefined) return undefined;
  return {
    mode,
    indexTokens: indexTokens ?? DEFAULT_INDEX_TOKENS,
    bodyTokens: bodyTokens ?? DEFAULT_BODY_TOKENS,
    unloadShare: (unloadPercent ?? DEFAULT_UNLOAD_PERCENT) / 100,
  };
}
