import type { Spend, TrustPolicyStatus } from '../../api/v1alpha1/trustpolicy.ts';
import { printable } from '../../lib/printable.ts';
import { type ConditionUpdate, PROGRESS_CONDITIONS, progressConditions, updateConditions } from '../conditions.ts';
import type { StoredPolicy } from '../kube/types.ts';
import { fieldsInForceCondition } from '../spec-conditions.ts';

export interface ObservedPolicy {
  readonly policy: StoredPolicy;
  readonly agents: number;
  /** The first rule that the spec violates. */
  readonly specError: string | undefined;
  readonly spend: Spend[] | undefined;
  readonly now: Date;
}

/** Computes the policy status. Pure. */
export function policyStatus({ policy, agents, specError, spend, now }: ObservedPolicy): TrustPolicyStatus {
  const { generation } = policy.metadata;
  const inForce = fieldsInForceCondition('TrustPolicy', policy.spec);
  const ready = readyCondition(policy, specError);
  const findings = [
    ready,
    ...progressConditions(ready),
    activeCondition(policy),
    ...(inForce === undefined ? [] : [inForce]),
  ];
  return {
    ...policy.status,
    observedGeneration: generation,
    agents,
    ...(spend === undefined ? {} : { spend: mergedSpend(policy.status?.spend, spend) }),
    conditions: updateConditions(
      policy.status?.conditions,
      [...PROGRESS_CONDITIONS, 'FieldsInForce'],
      findings,
      generation,
      now,
    ),
  };
}

/**
 * Keeps the old entry of a window while its new window has no spend, so that an unused policy is not written every hour. The old entry
 * has the `start` of its window, and a ledger that is restored from it ignores ended windows.
 */
function mergedSpend(before: readonly Spend[] = [], after: readonly Spend[]): Spend[] {
  const old = new Map(before.map((spend) => [spend.window, spend]));
  return after.map((spend) => (isZero(spend) ? (old.get(spend.window) ?? spend) : spend));
}

function isZero({ inputTokens, outputTokens, cost, toolCalls, networkBytes }: Spend): boolean {
  return inputTokens + outputTokens + toolCalls + networkBytes === 0 && Number(cost) === 0;
}

function readyCondition({ spec }: StoredPolicy, specError: string | undefined): ConditionUpdate<'Ready'> {
  if (specError !== undefined) {
    return { type: 'Ready', status: 'False', reason: 'InvalidSpec', message: printable(specError, 2_000) };
  }
  if (spec.models?.judge === undefined) {
    const message = 'in force; no judge is configured, so no forged tool is accepted: set spec.models.judge';
    return { type: 'Ready', status: 'True', reason: 'JudgeMissing', message };
  }
  return { type: 'Ready', status: 'True', reason: 'Accepted', message: 'in force' };
}

function activeCondition({ spec }: StoredPolicy): ConditionUpdate<'Active'> {
  if (spec.suspend !== true)
    return { type: 'Active', status: 'True', reason: 'Active', message: 'the kill switch is off' };
  const message =
    'the kill switch is on: all agents under this policy are stopped; set spec.suspend to false, which requires the verb resume';
  return { type: 'Active', status: 'False', reason: 'Suspended', message };
}
