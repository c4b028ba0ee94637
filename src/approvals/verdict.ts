import { isDeepStrictEqual } from 'node:util';
import type { ApprovalSubject } from '../api/v1alpha1/common.ts';
import type { ApprovalRecord } from './approval-record.ts';

/** What has to be decided, and which decisions count. */
export interface ApprovalQuestion {
  readonly subject: ApprovalSubject;
  /** The nonce of the request. Undefined: no request exists, so nothing can be approved, and only a revocation counts. */
  readonly nonce: string | undefined;
  /** Users and agents who may not approve, as `alice`, `user/alice` or `agent/analyst`. */
  readonly contributors?: readonly string[];
  /** Approvals that are not younger do not count: the admission policy that checks the approver was not in force yet. */
  readonly notBefore?: Date;
}

/** Why an Approval with the right subject does not count. */
export type IgnoredReason = 'nonce' | 'contributor' | 'before-admission-policy' | 'revoked';

export interface IgnoredApproval {
  readonly approval: ApprovalRecord;
  readonly reason: IgnoredReason;
}

export type Verdict =
  | { readonly decision: 'Approve' | 'Deny' | 'Revoke'; readonly approval: ApprovalRecord }
  | { readonly decision: 'Pending'; readonly ignored: readonly IgnoredApproval[] };

/**
 * Decides a question by all Approvals of its namespace, in any order: Revoke before Deny before Approve.
 *
 *   Revoke   withdraws the Approvals with its nonce, and every Approval that is not younger than itself
 *   Deny     is final for its nonce
 *   Approve  counts for exactly this subject and nonce
 *
 * So an approval that is applied again after its revocation, under any name and in any order, has no effect, and a new request with a new
 * nonce has. For a promotion a revocation applies to the digest at every tier. Pure.
 */
export function verdictOn(question: ApprovalQuestion, approvals: readonly ApprovalRecord[]): Verdict {
  const { nonce } = question;
  const revocations = approvals.filter((one) => one.decision === 'Revoke' && isRevokedBy(question.subject, one));
  const own = approvals.filter((one) => one.decision !== 'Revoke' && isDeepStrictEqual(question.subject, one.subject));
  const approves = own
    .filter(({ decision }) => decision === 'Approve')
    .map((approval) => ({ approval, reason: problemOf(question, approval, revocations) }))
    .sort((one, other) => order(one.approval, other.approval));
  const counting = approves.find(({ reason }) => reason === undefined)?.approval;
  const revoked = counting === undefined ? latest(revocations.filter(blocks(nonce, own))) : undefined;
  if (revoked !== undefined) return { decision: 'Revoke', approval: revoked };
  const denied = own.find((one) => one.decision === 'Deny' && one.nonce === nonce);
  if (denied !== undefined) return { decision: 'Deny', approval: denied };
  if (counting !== undefined) return { decision: 'Approve', approval: counting };
  const ignored = approves.flatMap(({ approval, reason }) => (reason === undefined ? [] : [{ approval, reason }]));
  return { decision: 'Pending', ignored };
}

function problemOf(
  { nonce, contributors = [], notBefore }: ApprovalQuestion,
  approval: ApprovalRecord,
  revocations: readonly ApprovalRecord[],
): IgnoredReason | undefined {
  if (nonce === undefined || approval.nonce !== nonce) return 'nonce';
  if (revocations.some((one) => withdraws(one, approval))) return 'revoked';
  if (contributors.includes(approval.by) || contributors.includes(`user/${approval.by}`)) return 'contributor';
  if (notBefore !== undefined && !(Date.parse(approval.createdAt) >= notBefore.getTime()))
    return 'before-admission-policy';
  return undefined;
}

/** Creation times have whole seconds: of the same second counts as not younger. */
function withdraws(revocation: ApprovalRecord, approval: ApprovalRecord): boolean {
  return revocation.nonce === approval.nonce || !(Date.parse(approval.createdAt) > Date.parse(revocation.createdAt));
}

/**
 * A revocation blocks a request with its own nonce, one without any, and one that it withdrew the approval of. A request with a new nonce
 * without a decision is pending.
 */
function blocks(nonce: string | undefined, own: readonly ApprovalRecord[]): (one: ApprovalRecord) => boolean {
  const ofNonce = own.filter((one) => one.decision === 'Approve' && one.nonce === nonce);
  return (revocation) =>
    nonce === undefined || revocation.nonce === nonce || ofNonce.some((one) => withdraws(revocation, one));
}

function isRevokedBy(subject: ApprovalSubject, revocation: ApprovalRecord): boolean {
  const { promotion } = subject;
  if (promotion === undefined) return isDeepStrictEqual(subject, revocation.subject);
  return revocation.subject.promotion?.digest === promotion.digest;
}

function latest(approvals: readonly ApprovalRecord[]): ApprovalRecord | undefined {
  return [...approvals].sort(order).at(-1);
}

function order(one: ApprovalRecord, other: ApprovalRecord): number {
  return Date.parse(one.createdAt) - Date.parse(other.createdAt) || (one.name < other.name ? -1 : 1);
}
