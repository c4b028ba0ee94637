import { patternSet } from '../patterns/pattern-set.ts';
import { PRIVATE_NETWORK_RULE } from './sources.ts';
import { toNetworkInput } from '../rules/rule-inputs.ts';
import type { Decider, Decision, PolicyRequest } from '../types.ts';

/** The decider of a call that an approver permitted by a rule: its connections to the hosts that the approver saw need no other approval. */
export function withApprovedConnections(
  decider: Decider,
  approved: { rule: string; hosts: readonly string[] } | undefined,
): Decider {
  if (approved?.rule !== PRIVATE_NETWORK_RULE) return decider;
  const hosts = patternSet(approved.hosts, 'host');
  const covered = <T extends Decision>(request: PolicyRequest, decision: T): T => {
    const isQuestion = decision.effect === 'Escalate' && decision.rule === PRIVATE_NETWORK_RULE;
    if (!isQuestion || request.kind !== 'Network' || !hosts.covers(toNetworkInput(request).subject)) return decision;
    return { ...decision, effect: 'Allow', reason: 'An approver permitted the call that opens the connection.' };
  };
  return {
    ...decider,
    decide: (request) => covered(request, decider.decide(request)),
    explain: (request) => covered(request, decider.explain(request)),
  };
}
