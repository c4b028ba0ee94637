import { printable } from '../../lib/escape.ts';
import type { Finding } from '../conditions.ts';
import type { Observed } from './observed.ts';

type AcceptanceInput = Pick<Observed, 'agent' | 'policy' | 'specProblem' | 'policyProblem' | 'grantProblem' | 'rank'>;

/** Why the agent may not have a pod; undefined when it may. The first reason counts, in the order in which people can mend them. */
export function refusal(observed: AcceptanceInput): Finding<'Ready'> | undefined {
  const { agent, policy, specProblem, policyProblem, grantProblem, rank } = observed;
  const policyName = agent.spec.trustPolicyRef.name;
  if (specProblem !== undefined) return no('InvalidSpec', specProblem);
  if (policy === undefined) {
    const where = `namespace "${agent.metadata.namespace}"`;
    return no(
      'TrustPolicyNotFound',
      `TrustPolicy "${policyName}" does not exist in ${where}; create it or change spec.trustPolicyRef`,
    );
  }
  if (policyProblem !== undefined)
    return no('InvalidSpec', `TrustPolicy "${policyName}" cannot be used: ${policyProblem}`);
  if (grantProblem !== undefined) return no('GrantDenied', grantProblem);
  const limit = policy.spec.quotas?.agents;
  if (limit !== undefined && rank.older >= limit) {
    const counted = `${rank.all} agents exist, TrustPolicy "${policyName}" allows ${limit} and older ones come first`;
    return no('AgentQuotaExceeded', `${counted}; delete one or raise spec.quotas.agents`);
  }
  return undefined;
}

function no(reason: string, message: string): Finding<'Ready'> {
  return { type: 'Ready', status: 'False', reason, message: printable(message, 2_000) };
}

/** What stops an agent on purpose; undefined when nothing does. */
export function suspension({ agent, policy }: Pick<Observed, 'agent' | 'policy'>): string | undefined {
  if (agent.spec.suspend === true) return 'suspended by spec.suspend; set it to false to go on';
  if (policy?.spec.suspend === true) {
    return `suspended by the kill switch of TrustPolicy "${agent.spec.trustPolicyRef.name}"; set its spec.suspend to false to go on`;
  }
  return undefined;
}
