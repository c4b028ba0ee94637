import type { RegisteredTool, PromotionState, ToolStatistics } from './types.ts';
import { openingGaps, type PromotionRules } from './promotion-rules.ts';
import type { PromotionNote } from './promotion-notes.ts';

/** Everything the next step depends on, frozen at one moment. */
export interface PromotionFacts {
  /** The widest active tool with the digest that belongs to the owner; absent when there is none. */
  tool: RegisteredTool | undefined;
  uses: ToolStatistics;
  /** What was decided about this tool and tier before. */
  note: PromotionNote | undefined;
  rules: PromotionRules;
  /** Forged tools its steps are pinned to, as they are now; absent ones are undefined. */
  dependencies: readonly (RegisteredTool | undefined)[];
  now: Date;
}

export type PromotionStep = { step: 'stay'; state: PromotionState } | { step: 'verify'; tool: RegisteredTool };

/**
 *   Candidate ──uses suffice──▶ Verifying ──figures suffice──▶ PanelReview ──both approve──▶ Promoted (Agent)
 *       ▲                          │ failed                       │ refused     └─requireHuman─▶ AwaitingApproval ─▶ Promoted
 *       └──── cool-down over ── Rejected ◀────────────────────────┴──────────────── denied ──────────┘
 */
export function planToAgent(facts: PromotionFacts): PromotionStep {
  const { tool, note, rules, now } = facts;
  if (tool === undefined) return stay({ state: 'Candidate', missing: ['no active tool of the agent has this digest'] });
  if (tool.tier !== 'Session') return stay({ state: 'Promoted', to: tool.tier });
  const settled = settledState(note, now);
  if (settled !== undefined) return stay(settled);
  const missing = [...openingGaps(tool, facts.uses, rules), ...dependencyGaps(facts.dependencies, 'Agent')];
  return missing.length > 0 ? stay({ state: 'Candidate', missing }) : { step: 'verify', tool };
}

/** A person is asked only about what could be shared if they say yes. */
export function planToShared(facts: PromotionFacts): PromotionStep {
  const { tool, note, rules, now, uses } = facts;
  if (tool?.tier === 'Shared') return stay({ state: 'Promoted', to: 'Shared' });
  if (tool?.tier !== 'Agent')
    return stay({ state: 'Candidate', missing: ['only an active tool of tier Agent can be shared'] });
  const settled = settledState(note, now);
  if (settled !== undefined) return stay(settled);
  const missing = dependencyGaps(facts.dependencies, 'Shared');
  if (tool.sourceWithheld)
    missing.push('its source is not kept in the object; set forge.persistSource and forge it again');
  if (uses.agents < rules.minAgents) missing.push(`${uses.agents} of ${rules.minAgents} agents used it`);
  return missing.length > 0 ? stay({ state: 'Candidate', missing }) : { step: 'verify', tool };
}

function settledState(note: PromotionNote | undefined, now: Date): PromotionState | undefined {
  if (note?.state === 'AwaitingApproval') return { state: 'AwaitingApproval', request: note.request };
  if (note?.state === 'Rejected' && Date.parse(note.coolDownUntil) > now.getTime()) {
    return { state: 'Rejected', reason: note.reason, coolDownUntil: note.coolDownUntil };
  }
  return undefined;
}

/** A tool may outlive only what it needs no more: a wider tool depends on tools at least as wide. */
function dependencyGaps(dependencies: PromotionFacts['dependencies'], to: 'Agent' | 'Shared'): string[] {
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
