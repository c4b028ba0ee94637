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
export function skillBudget(spec: Pick<AgentSpec, 'disclosure'>): SkillBudget {
  return {
    bodyTokens: bodyTokensOf(spec),
    unloadShare: (spec.disclosure?.unloadPercent ?? DEFAULT_UNLOAD_PERCENT) / 100,
  };
}

/** What the definitions of loaded tools may have, in tokens. */
export function bodyTokensOf({ disclosure }: Pick<AgentSpec, 'disclosure'>): number {
  return disclosure?.bodyTokens ?? DEFAULT_BODY_TOKENS;
}

/** Undefined for an agent whose model always gets all tools. */
export function disclosureSettings(spec: AgentSpec): DisclosureSettings | undefined {
  const { disclosure, invocation, model } = spec;
  const { mode = 'Inline', indexTokens } = disclosure ?? {};
  if (mode === 'Inline' || invocation === 'Code' || model.agent !== undefined) return undefined;
  return {
    mode,
    indexTokens: indexTokens ?? DEFAULT_INDEX_TOKENS,
    ...skillBudget(spec),
  };
}
