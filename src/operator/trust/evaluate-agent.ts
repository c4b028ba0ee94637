import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import { effectiveLevel } from '../../policy/levels.ts';
import { bindingOf, effectiveLevels } from '../../policy/trust/effective.ts';
import { evaluateTrust, evidenceMarks, type TrustEvaluation, type TrustRequest } from '../../policy/trust/evaluate.ts';
import type { TaskEvidence } from '../../policy/trust/evidence.ts';
import { needsTrust } from '../../policy/trust/trust-state.ts';
import type { ObservedAgent } from '../agent/observed.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { TrustEvidence } from '../ports.ts';

/** The evidence for the next evaluation, from memory. */
export function evidenceOf(
  evidence: TrustEvidence | undefined,
  { metadata, status }: StoredAgent,
  policy: StoredPolicy | undefined,
): TaskEvidence | undefined {
  if (evidence === undefined || policy === undefined || !needsTrust(policy.spec)) return undefined;
  return evidence.get(metadata.uid, evidenceMarks(status?.trust, new Date(metadata.creationTimestamp)));
}

/** Undefined without a valid policy: the status then keeps what it records, and gateways use no more than the initial level. */
export function evaluateAgent(
  { agent, policy, policyError, taskEvidence, now }: ObservedAgent,
  approvalOf: (request: TrustRequest) => string | undefined,
): TrustEvaluation | undefined {
  if (policy === undefined || policyError !== undefined) return undefined;
  return evaluateTrust({
    policy: policy.spec,
    binding: bindingOf(agent, policy),
    trust: agent.status?.trust,
    evidence: taskEvidence,
    now,
    createdAt: new Date(agent.metadata.creationTimestamp),
    approvalOf,
  });
}

/** The fields of the status that tell the level: the one that decisions use, after ceiling and custom levels. */
export function trustFields(
  { agent, policy, policyError }: ObservedAgent,
  evaluation: TrustEvaluation | undefined,
): Pick<AgentStatus, 'level' | 'trust'> {
  if (policy === undefined || policyError !== undefined || evaluation === undefined) return {};
  const { level } = effectiveLevels(evaluation.trust, bindingOf(agent, policy), policy.spec);
  return { level: effectiveLevel(level, policy.spec).name, trust: evaluation.trust } as Pick<
    AgentStatus,
    'level' | 'trust'
  >;
}
