import { printable } from '../../lib/printable.ts';
import type { ApprovalDecision } from '../../tools/approvals.ts';
import type { RegisteredTool, PromotionState, ToolStatistics } from '../types.ts';
import type { PanelVerdict } from '../judge/panel.ts';
import { formatFigures, testFailureMessage } from './promotion-messages.ts';
import {
  confidenceGap,
  failedVerification,
  type PromotionRules,
  type RerunFigures,
  useGaps,
  verificationGaps,
} from './promotion-rules.ts';
import type { StoredPromotionState } from './promotion-state-store.ts';

/** Snapshot of all inputs of the next step. */
export interface PromotionInput {
  /** The active tool of the widest tier with this digest that is visible to the owner, if any. */
  tool: RegisteredTool | undefined;
  uses: ToolStatistics;
  /** Agents of the namespace that have the tool in service at tier Agent. */
  holders: number;
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
  const { tool, storedState, rules, now, holders } = facts;
  if (tool?.tier === 'Shared') return stay({ state: 'Promoted', to: 'Shared' });
  if (tool?.tier !== 'Agent')
    return stay({ state: 'Candidate', missing: ['only an active tool of tier Agent can be shared'] });
  const blocking = blockingState(storedState, now);
  if (blocking !== undefined) return stay(blocking);
  const missing = dependencyGaps(facts.dependencies, 'Shared');
  if (tool.sourceWithheld)
    missing.push('its source is not stored in the object; set forge.persistSource and forge it again');
  if (holders < rules.minAgents) missing.push(`${holders} of ${rules.minAgents} agents have it at tier Agent`);
  return missing.length > 0 ? stay({ state: 'Candidate', missing }) : { step: 'verify', tool };
}

/** Retry delay for an unavailable panel, unless the cool-down of the policy is shorter. */
const UNAVAILABLE_COOL_DOWN_MS = 10 * 60_000;

interface Rejection {
  step: 'reject';
  cause: string;
  coolDownMs: number;
}

/** The step after the re-runs of a promotion to tier Agent. */
export function planAfterReruns(
  figures: RerunFigures,
  rules: PromotionRules,
): { step: 'stay'; state: PromotionState } | { step: 'review' } | Rejection {
  const gaps = verificationGaps(figures, rules);
  if (gaps.length === 0) return { step: 'review' };
  if (!failedVerification(figures, rules)) return { step: 'stay', state: { state: 'Candidate', missing: gaps } };
  return { step: 'reject', cause: gaps.join('; '), coolDownMs: rules.coolDownMs };
}

/** The step after the verdict of the panel. */
export function planAfterPanel(
  panel: PanelVerdict,
  figures: RerunFigures,
  rules: PromotionRules,
): { step: 'ask' } | { step: 'promote'; note: string } | Rejection {
  if (panel.userDecides !== undefined) return { step: 'ask' };
  const gap = panel.approved ? confidenceGap('the panel', panel.confidence, rules) : undefined;
  if (!panel.approved || gap !== undefined) {
    const isUnavailable = panel.code === 'TEMPER_JUDGE_UNAVAILABLE';
    const coolDownMs = isUnavailable ? Math.min(UNAVAILABLE_COOL_DOWN_MS, rules.coolDownMs) : rules.coolDownMs;
    return { step: 'reject', cause: gap ?? `panel: ${panel.reasoning}`, coolDownMs };
  }
  if (rules.requireHuman) return { step: 'ask' };
  const [safety, correctness] = panel.verdicts;
  const note = `${formatFigures(figures)} → panel: safety ${safety.confidence.toFixed(2)}, correctness ${correctness.confidence.toFixed(2)}`;
  return { step: 'promote', note };
}

/** The step after the decision of an approver, who must not have contributed to the tool. */
export function planAfterDecision(
  { contributors }: RegisteredTool,
  { decision, by, reason }: Pick<ApprovalDecision, 'decision' | 'by' | 'reason'>,
  { coolDownMs }: PromotionRules,
): { step: 'verify' } | Rejection {
  const approver = printable(by, 120);
  if (decision !== 'Approve')
    return { step: 'reject', cause: `${approver} denied it: ${printable(reason, 300)}`, coolDownMs };
  if (contributors.includes(by))
    return { step: 'reject', cause: `${approver} contributed to it and must not approve it`, coolDownMs };
  return { step: 'verify' };
}

/** The step after the re-runs of a tool that only an approval can promote. */
export function planAfterTests(figures: RerunFigures, { coolDownMs }: PromotionRules): { step: 'pass' } | Rejection {
  if (figures.failedTests === 0) return { step: 'pass' };
  return { step: 'reject', cause: testFailureMessage(figures), coolDownMs };
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
