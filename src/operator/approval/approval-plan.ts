import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import type { IgnoredReason, Verdict } from '../../approvals/verdict.ts';
import type { ConditionUpdate } from '../conditions.ts';
import { byline } from '../tool/plan.ts';

/** Everything that decides whether a decision about a promotion applies. */
export interface ObservedApproval {
  readonly approval: ApprovalRecord;
  /** The verdict on its subject with its own nonce. */
  readonly verdict: Verdict;
  /** A request or a tool has its subject and nonce. */
  readonly hasSubject: boolean;
  /** The policy denied the request with its nonce after a timeout, and no tool has the nonce. */
  readonly isTooLate: boolean;
  /** The nonces of requests and tools with its subject. */
  readonly otherNonce: string | undefined;
}

const MESSAGES: Readonly<Record<Exclude<IgnoredReason, 'nonce'>, readonly [reason: string, message: string]>> = {
  contributor: ['ContributorMayNotApprove', 'the approver contributed to the tool; another user has to approve it'],
  'before-admission-policy': [
    'CreatedTooEarly',
    'it was created before the admission policies were in force; create it again under another name',
  ],
  revoked: ['Withdrawn', 'a later decision revoked the tool'],
};

/** Whether the decision applies, for its author. Pure. */
export function planApproval(observed: ObservedApproval): ConditionUpdate<'Effective'> {
  const { approval, verdict, hasSubject, isTooLate, otherNonce } = observed;
  if (approval.decision === 'Revoke') return applied('no tool with this digest is in service in the namespace');
  if (verdict.decision === 'Pending') {
    const own = verdict.ignored.find((one) => one.approval.name === approval.name);
    if (own !== undefined && own.reason !== 'nonce') return effective('False', ...MESSAGES[own.reason]);
  }
  if (verdict.decision === 'Revoke') return effective('False', 'Withdrawn', byline(verdict.approval, 'revoked'));
  if (verdict.decision === 'Deny' && approval.decision === 'Approve')
    return effective('False', 'Withdrawn', byline(verdict.approval, 'denied'));
  if (isTooLate && approval.decision === 'Approve')
    return effective(
      'False',
      'RequestTimedOut',
      'the policy denied the request after its timeout (approvals.timeout); approve the next request',
    );
  if (hasSubject)
    return applied(approval.decision === 'Approve' ? 'the promotion is approved' : 'the promotion is denied');
  if (otherNonce !== undefined)
    return effective('False', 'NonceMismatch', `the current request has the nonce ${otherNonce}; approve that one`);
  return effective(
    'False',
    'SubjectNotFound',
    'no request and no tool of the namespace has its digest, tier and nonce; it applies as soon as one exists',
  );
}

function applied(message: string): ConditionUpdate<'Effective'> {
  return effective('True', 'Applied', message);
}

function effective(status: 'True' | 'False', reason: string, message: string): ConditionUpdate<'Effective'> {
  return { type: 'Effective', status, reason, message };
}
