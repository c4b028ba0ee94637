import type { RegisteredTool, PromotionState, ToolStatistics } from '../types.ts';
import { useGaps, type PromotionRules } from './promotion-rules.ts';
import type { StoredPromotionState } from './promotion-state-store.ts';

/** Snapshot of all inputs of the next step. */
export interface PromotionInput {
  /** The active tool of the widest tier with this digest that is visible to the owner, if any. */
  tool: RegisteredTool | undefined;
  uses: ToolStatistics;
  /** The stored state of an earlier promotion of this tool to this tier. */
  storedState: StoredPromotionState | undefined;
  rules: PromotionRules;
  /** Current state of the forged tools its steps are pinned to; undefined for an inactive one. */
  dependencies: readonly (RegisteredTool | undefined)[];
  now: Date;
}

export type PromotionStep = { step: 'stay'; state: PromotionState } | { step: 'verify'; tool: RegisteredTool };

/**
 *   Candidate ──uses suffice──▶ Verifying ──figures suffice──▶ PanelReview ──both approve──▶ Promoted (Agent)
 *       ▲                          │ failed                       │ refused     └─requireHuman─▶ AwaitingApproval ─▶ Promoted
 *       └─── cool-down ends ─── Rejected ◀────────────────────────┴──────────────── denied ──────────┘
 */
export function planAgentPromotion(facts: PromotionInput): PromotionStep {
  const { tool, storedState, rules, now } = facts;
  if (tool === undefined) return stay({ state: 'Candidate', missing: ['no active tool of the agent has this digest'] });
  if (tool.tier !== 'Session') return stay({ state: 'Promoted', to: tool.tier });
  const blocking = blockingState(storedState, now);
  if (blocking !== undefined) return stay(blocking);
  const missing = [...useGaps(tool, facts.uses, rules), ...dependencyGaps(facts.dependencies, 'Agent')];
  return missing.length > 0 ? stay({ state: 'Candidate', missing }) : { step: 'verify', tool };
}

/** Requests an approval only for a tool that can be shared once it is approved. */
export function planSharedPromotion(facts: PromotionInput): PromotionStep {
  const { tool, storedState, rules, now, uses } = facts;
  if (tool?.tier === 'Shared') return stay({ state: 'Promoted', to: 'Shared' });
  if (tool?.tier !== 'Agent')
    return stay({ state: 'Candidate', missing: ['only an active tool of tier Agent can be shared'] });
  const blocking = blockingState(storedState, now);
  if (blocking !== undefined) return stay(blocking);
  const missing = dependencyGaps(facts.dependencies, 'Shared');
  if (tool.sourceWithheld)
    missing.push('its source is not stored in the object; set forge.persistSource and forge it again');
  if (uses.agents < rules.minAgents) missing.push(`${uses.agents} of ${rules.minAgents} agents used it`);
  return missing.length > 0 ? stay({ state: 'Candidate', missing }) : { step: 'verify', tool };
}

function blockingState(stored: StoredPromotionState | undefined, now: Date): PromotionState | undefined {
  if (stored?.state === 'AwaitingApproval') return { state: 'AwaitingApproval', request: stored.request };
  if (stored?.state === 'Rejected' && Date.parse(stored.coolDownUntil) > now.getTime()) {
    return { state: 'Rejected', reason: stored.reason, coolDownUntil: stored.coolDownUntil };
  }
  return undefined;
}

/** A tool must not outlive its dependencies: the tools it calls must be at the target tier or a wider one. */
function dependencyGaps(dependencies: PromotionInput['dependencies'], to: 'Agent' | 'Shared'): string[] {
  return dependencies.flatMap((dependency) => {
    if (dependency === undefined || !dependency.active)
      return ['a forged tool that one of its steps calls is no longer active'];
    const wide = dependency.tier === 'Shared' || (to === 'Agent' && dependency.tier === 'Agent');
    return wide ? [] : [`it calls "${dependency.artifact.name}", which is at tier ${dependency.tier}`];
  });
}

function stay(state: PromotionState): PromotionStep {
  return { step: 'stay', state };
}
