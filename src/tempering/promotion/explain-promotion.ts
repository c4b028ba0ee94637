import { dependencyGaps, planAgentPromotion, planSharedPromotion, type PromotionInput } from './promotion-plan.ts';
import { useGaps } from './promotion-rules.ts';
import { recordingGaps } from './recording-rules.ts';

/** Where the promotion of a tool to its next tier stands, for users. */
export interface PromotionExplanation {
  to: 'Agent' | 'Shared';
  state: 'Candidate' | 'Rejected' | 'AwaitingApproval';
  /** Why it is not promoted. */
  reason: string;
  /** What has to happen for the next attempt. */
  nextStep: string;
}

const NEXT_USE = 'the next valid use starts a verification';

/**
 * Explains why an active tool does not have the next tier yet. Undefined for a tool that no wider tier exists for. `mayBeShared`: whether
 * the policy has requirements for tier Shared.
 */
export function explainPromotion(facts: PromotionInput, mayBeShared: boolean): PromotionExplanation | undefined {
  const { tool } = facts;
  if (tool?.tier === 'Session') return explain('Agent', facts);
  if (tool?.tier !== 'Agent') return undefined;
  if (mayBeShared) return explain('Shared', facts);
  return {
    to: 'Shared',
    state: 'Candidate',
    reason: 'TrustPolicy spec.promotion.toShared is absent',
    nextStep: 'set it, and the next valid use requests an approval',
  };
}

function explain(to: 'Agent' | 'Shared', facts: PromotionInput): PromotionExplanation {
  const plan = to === 'Agent' ? planAgentPromotion(facts) : planSharedPromotion(facts);
  const state = plan.step === 'stay' ? plan.state : undefined;
  switch (state?.state) {
    case 'AwaitingApproval': {
      const { request } = state;
      const nextStep = `temper approve ${request} --reason …, or temper deny ${request} --reason …`;
      return { to, state: 'AwaitingApproval', reason: `approval ${request} is pending`, nextStep };
    }
    case 'Rejected':
      return {
        to,
        state: 'Rejected',
        reason: state.reason,
        nextStep: `a valid use after the cool-down, which ends at ${state.coolDownUntil}, starts a verification`,
      };
    case 'Candidate':
      return { to, state: 'Candidate', reason: state.missing.join('; '), nextStep: nextStepOf(to, facts) };
    default:
      return { to, state: 'Candidate', ...afterAttempt(facts) };
  }
}

/** Every requirement that can be checked now is met: the reason is what stopped the last attempt, if there was one. */
function afterAttempt({ storedState }: PromotionInput): Pick<PromotionExplanation, 'reason' | 'nextStep'> {
  if (storedState?.state === 'Candidate')
    return { reason: storedState.missing.join('; '), nextStep: `remove the cause; ${NEXT_USE}` };
  return { reason: 'its uses suffice', nextStep: NEXT_USE };
}

function nextStepOf(to: 'Agent' | 'Shared', facts: PromotionInput): string {
  const { tool, uses, rules, dependencies, holders } = facts;
  const steps: string[] = [];
  if (to === 'Agent' && tool !== undefined && useGaps(tool, uses, rules).length > 0)
    steps.push('use it with different inputs in different messages, or lower the requirements of the TrustPolicy');
  if (recordingGaps(uses, to, rules).length > 0)
    steps.push(
      to === 'Agent' && uses.recordedInputs.reported > 0
        ? 'set spec.promotion.toAgent.reportedEvidence to Allow if you trust the pods of this agent'
        : 'use it where its calls can be recorded: fewer and smaller answers, without secrets',
    );
  if (dependencyGaps(dependencies, to).length > 0) steps.push('promote the tools that its steps call first');
  if (to === 'Shared' && tool?.sourceWithheld === true) steps.push('set forge.persistSource and forge it again');
  if (to === 'Shared' && holders < rules.minAgents) steps.push('have more agents bring it to tier Agent');
  return steps.length === 0 ? NEXT_USE : steps.join('; ');
}
