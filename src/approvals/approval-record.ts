import type { ApprovalSpec } from '../api/v1alpha1/approval.ts';

/** What a cache keeps of an Approval to decide with: a few hundred bytes, whatever a user stores in the object. */
export interface ApprovalRecord {
  readonly name: string;
  /** RFC 3339, by the API server. */
  readonly createdAt: string;
  readonly decision: ApprovalSpec['decision'];
  readonly nonce: string;
  readonly subject: ApprovalSpec['subject'];
  /** The user name of the caller, which the admission policy compared with the request. */
  readonly by: string;
  /** Text of a user: print it sanitized. */
  readonly reason?: string;
}

const MAX_REASON = 300;

interface ApprovalObject {
  readonly metadata: { readonly name: string; readonly creationTimestamp?: string };
  readonly spec: ApprovalSpec;
}

export function approvalRecord({ metadata, spec }: ApprovalObject): ApprovalRecord {
  const { decision, nonce, subject, approvedBy, reason } = spec;
  return {
    name: metadata.name,
    createdAt: metadata.creationTimestamp ?? '',
    decision,
    nonce,
    subject,
    by: approvedBy.username,
    ...(reason === undefined ? {} : { reason: reason.slice(0, MAX_REASON) }),
  };
}
