import { printable } from '../../lib/printable.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { ObservedAgent } from './observed.ts';

type AdmissionInput = Pick<ObservedAgent, 'agent' | 'policy' | 'specError' | 'policyError' | 'grantError' | 'rank'>;

/** Why the agent may not have a pod; undefined when it may. Checks the reasons in the order in which a user can fix them. */
export function rejection(observed: AdmissionInput): ConditionUpdate<'Ready'> | undefined {
  const { agent, policy, specError, policyError, grantError, rank } = observed;
  const policyName = agent.spec.trustPolicyRef.name;
  if (specError !== undefined) return notReady('InvalidSpec', specError);
  if (policy === undefined) {
    const where = `namespace "${agent.metadata.namespace}"`;
    return notReady(
      'TrustPolicyNotFound',
      `TrustPolicy "${policyName}" does not exist in ${where}; create it or change spec.trustPolicyRef`,
    );
  }
  if (policyError !== undefined)
    return notReady('InvalidSpec', `TrustPolicy "${policyName}" cannot be used: ${policyError}`);
  if (grantError !== undefined) return notReady('GrantDenied', grantError);
  const limit = policy.spec.quotas?.agents;
  if (limit !== undefined && rank.older >= limit) {
    const counted = `${rank.all} agents exist, TrustPolicy "${policyName}" allows ${limit}, and older agents have precedence`;
    return notReady('AgentQuotaExceeded', `${counted}; delete one or raise spec.quotas.agents`);
  }
  return undefined;
}

export function notReady(reason: string, message: string): ConditionUpdate<'Ready'> {
  return { type: 'Ready', status: 'False', reason, message: printable(message, 2_000) };
}

/** Why the agent is suspended; undefined when it is not. */
export function suspension({ agent, policy }: Pick<ObservedAgent, 'agent' | 'policy'>): string | undefined {
  if (agent.spec.suspend === true) return 'suspended by spec.suspend; set it to false to resume';
  if (policy?.spec.suspend === true) {
    return `suspended by the kill switch of TrustPolicy "${agent.spec.trustPolicyRef.name}"; set its spec.suspend to false to resume`;
  }
  return undefined;
}
