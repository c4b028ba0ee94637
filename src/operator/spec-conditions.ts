import { judgeProblem } from '../api/checks/warnings.ts';
import { describeNotInForce, fieldsNotInForce } from '../api/not-in-force.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { CapabilitySpec } from '../api/v1alpha1/capability.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { ConditionUpdate } from './conditions.ts';

/** False when the spec has fields without effect; undefined when all are in force, so that a usual object has no such condition. */
export function fieldsInForceCondition(
  kind: 'Agent' | 'TrustPolicy' | 'Capability',
  spec: AgentSpec | TrustPolicySpec | CapabilitySpec,
): ConditionUpdate<'FieldsInForce'> | undefined {
  return notInForce(describedFields(kind, spec));
}

/** The same for an agent, whose grants of the network need the egress proxy of the release. */
export function agentFieldsInForceCondition(
  spec: AgentSpec,
  { hasEgress }: { readonly hasEgress: boolean },
): ConditionUpdate<'FieldsInForce'> | undefined {
  const needsEgress = !hasEgress && mayUseHosts(spec);
  return notInForce([...describedFields('Agent', spec), ...(needsEgress ? [WITHOUT_EGRESS] : [])]);
}

/** Whether the agent has grants for hosts that its own constraints do not take away. */
export function mayUseHosts({ grants, constraints }: AgentSpec): boolean {
  return (grants?.network ?? []).length > 0 && constraints?.network !== 'None';
}

const WITHOUT_EGRESS =
  'spec.grants.network has no effect: this release runs no egress proxy; set egress.enabled of the chart';

function describedFields(
  kind: Parameters<typeof fieldsInForceCondition>[0],
  spec: Parameters<typeof fieldsInForceCondition>[1],
): string[] {
  return fieldsNotInForce(kind, spec)
    .filter(({ where }) => where !== 'run')
    .map(describeNotInForce);
}

function notInForce(found: readonly string[]): ConditionUpdate<'FieldsInForce'> | undefined {
  if (found.length === 0) return undefined;
  return { type: 'FieldsInForce', status: 'False', reason: 'FieldsNotInForce', message: found.join('; ') };
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
