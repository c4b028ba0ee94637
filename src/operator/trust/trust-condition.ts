import type { TrustEvaluation, TrustTransition } from '../../policy/trust/evaluate.ts';
import { type ConditionEvent, type ConditionUpdate, reasonOf, TRUST_CONDITION } from '../conditions.ts';
import type { ObservedAgent } from '../agent/observed.ts';

/** The condition after an evaluation; `remove` when no level changed and none waits. Undefined keeps what there is. */
export function trustCondition(
  { agent }: ObservedAgent,
  evaluation: TrustEvaluation | undefined,
): ConditionUpdate<'TrustLevel'> | 'remove' | undefined {
  if (evaluation === undefined) return undefined;
  const { requests, transitions, trust } = evaluation;
  if (requests.length > 0) {
    const levels = requests.map(({ from, level, category }) => `${from} → ${level}${suffix(category)}`).join(', ');
    return condition('ApprovalPending', `waits for an approver: ${levels}`);
  }
  const last = transitions.at(-1);
  if (last !== undefined) return condition(last.kind, transitions.map(describeTransition).join('; '));
  const wasPending = reasonOf(agent.status?.conditions, TRUST_CONDITION) === 'ApprovalPending';
  return trust === undefined || wasPending ? 'remove' : undefined;
}

/** One Event per changed level. */
export function trustEvents({ transitions }: TrustEvaluation): ConditionEvent[] {
  return transitions.map((transition) => {
    const isLoss = transition.kind === 'Lowered' || transition.kind === 'Withdrawn';
    return {
      type: isLoss ? 'Warning' : 'Normal',
      reason: transition.kind,
      message: describeTransition(transition),
    };
  });
}

function describeTransition({ from, to, category, reason }: TrustTransition): string {
  return `level ${from} → ${to}${suffix(category)}: ${reason}`;
}

function suffix(category: string | undefined): string {
  return category === undefined ? '' : ` for category ${category}`;
}

function condition(reason: string, message: string): ConditionUpdate<'TrustLevel'> {
  return { type: TRUST_CONDITION, status: 'True', reason, message };
}
