import { judgeProblem } from '../api/checks/warnings.ts';
import { describeNotInForce, fieldsNotInForce } from '../api/not-in-force.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { ConditionUpdate } from './conditions.ts';

/** False when the spec has fields without effect; undefined when all are in force, so that a usual object has no such condition. */
export function fieldsInForceCondition(
  kind: 'Agent' | 'TrustPolicy',
  spec: AgentSpec | TrustPolicySpec,
): ConditionUpdate<'FieldsInForce'> | undefined {
  const found = fieldsNotInForce(kind, spec).filter(({ where }) => where !== 'run');
  if (found.length === 0) return undefined;
  const message = found.map(describeNotInForce).join('; ');
  return { type: 'FieldsInForce', status: 'False', reason: 'FieldsNotInForce', message };
}

/** False when the agent may forge and its policy accepts no tool from it; undefined otherwise. */
export function canForgeCondition(
  agent: AgentSpec,
  policyName: string,
  policy: TrustPolicySpec | undefined,
): ConditionUpdate<'CanForge'> | undefined {
  if (agent.forge?.enabled !== true || policy === undefined) return undefined;
  const problem = judgeProblem(agent, policy);
  if (problem === undefined) return undefined;
  const subject = `every tool that the agent forges is refused: TrustPolicy "${policyName}"`;
  const message =
    problem.reason === 'JudgeMissing'
      ? `${subject} has no judge; set its spec.models.judge`
      : `${subject} has the judge "${problem.judge}", which is a model of the agent; name another judge, or set its spec.models.judgeMayBeAuthor to true`;
  return { type: 'CanForge', status: 'False', reason: problem.reason, message };
}
