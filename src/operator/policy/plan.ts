import type { Spend, TrustPolicyStatus } from '../../api/v1alpha1/trustpolicy.ts';
import { printable } from '../../lib/escape.ts';
import { type Finding, withFindings } from '../conditions.ts';
import type { StoredPolicy } from '../kube-types.ts';

export interface ObservedPolicy {
  readonly policy: StoredPolicy;
  readonly agents: number;
  /** The first rule its spec breaks. */
  readonly specProblem: string | undefined;
  readonly spend: Spend[] | undefined;
  readonly now: Date;
}

/** Pure: what the status of the policy shall be. */
export function policyStatus({ policy, agents, specProblem, spend, now }: ObservedPolicy): TrustPolicyStatus {
  const { generation } = policy.metadata;
  const findings = [readiness(policy, specProblem), activity(policy)];
  return {
    ...policy.status,
    observedGeneration: generation,
    agents,
    ...(spend === undefined ? {} : { spend: folded(policy.status?.spend, spend) }),
    conditions: withFindings(policy.status?.conditions, findings, generation, now),
  };
}

/**
 * A window that has only begun changes nothing: who spends nothing is not written down every hour. What stands there says by `start` of
 * which window it is, and a ledger that begins with it leaves out what is over.
 */
function folded(before: readonly Spend[] = [], after: readonly Spend[]): Spend[] {
  const old = new Map(before.map((spend) => [spend.window, spend]));
  return after.map((spend) => (isNothing(spend) ? (old.get(spend.window) ?? spend) : spend));
}

function isNothing({ inputTokens, outputTokens, cost, toolCalls, networkBytes }: Spend): boolean {
  return inputTokens + outputTokens + toolCalls + networkBytes === 0 && Number(cost) === 0;
}

function readiness({ spec }: StoredPolicy, specProblem: string | undefined): Finding<'Ready'> {
  if (specProblem !== undefined) {
    return { type: 'Ready', status: 'False', reason: 'InvalidSpec', message: printable(specProblem, 2_000) };
  }
  if (spec.models?.judge === undefined) {
    const message = 'in force; no judge is named, so no forged tool is accepted: set spec.models.judge';
    return { type: 'Ready', status: 'True', reason: 'JudgeMissing', message };
  }
  return { type: 'Ready', status: 'True', reason: 'Accepted', message: 'in force' };
}

function activity({ spec }: StoredPolicy): Finding<'Active'> {
  if (spec.suspend !== true)
    return { type: 'Active', status: 'True', reason: 'Active', message: 'the kill switch is off' };
  const message =
    'the kill switch is on: no agent under this policy works; set spec.suspend to false, which needs the verb resume';
  return { type: 'Active', status: 'False', reason: 'Suspended', message };
}
