import type { ApprovalRequestSpec, ApprovalRequestStatus } from '../../api/v1alpha1/approvalrequest.ts';
import { decidedByTimeout } from '../../policy/approval-rules.ts';
import { type ConditionUpdate, reasonOf } from '../conditions.ts';

/** Who decides after a timeout, in statuses and audit records. */
export const POLICY_ACTOR = 'policy';

/** Who ends a request that nothing can decide any more. */
export const SYSTEM_ACTOR = 'system';

type Times = Pick<ApprovalRequestSpec, 'expiresAt' | 'onTimeout'>;

/** Whether the timeout denies a request about a promotion or a rise. No timeout approves one, whatever its object says. */
export function isOverdue({ spec, status }: { spec: Times; status?: ApprovalRequestStatus }, now: Date): boolean {
  return status?.decision === undefined && decidedByTimeout(spec, now) === 'Deny';
}

/** The policy denied the request after its timeout. This is final: a later Approval of the request has no effect. */
export function isTimedOut({ status }: { status?: ApprovalRequestStatus }): boolean {
  return status?.decision === 'Expired' && reasonOf(status.conditions, 'Decided') === 'TimedOut';
}

/** `next`: when the same is requested again. */
export function timedOut({ expiresAt }: Times, next: string): ConditionUpdate<'Decided'> {
  const message = `no approver decided before ${expiresAt ?? 'its end'}, the timeout of the policy (approvals.timeout); ${next}`;
  return { type: 'Decided', status: 'True', reason: 'TimedOut', message };
}
