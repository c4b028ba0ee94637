import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { type ApprovalRecord, approvalRecord } from '../../approvals/approval-record.ts';
import { GITOPS_ANNOTATIONS } from '../../approvals/gitops-annotations.ts';
import type { Stored } from '../kube/types.ts';

export type StoredApproval = Stored<Omit<Approval, 'spec'>> & {
  readonly record: ApprovalRecord;
  /** It has the annotations of an exported Approval: a GitOps controller creates it again when it is missing. */
  readonly isFromGit: boolean;
};
/** Without what only readers need: arguments and facts for the review. */
export type StoredRequest = Stored<Omit<ApprovalRequest, 'spec'>> & {
  readonly spec: Pick<
    ApprovalRequest['spec'],
    'type' | 'agent' | 'nonce' | 'subject' | 'expiresAt' | 'onTimeout' | 'escalation'
  >;
};

export function pruneApproval(object: Stored<Approval>): StoredApproval {
  const { apiVersion, kind, metadata, status } = object;
  return {
    apiVersion,
    kind,
    metadata: pruneMetadata(metadata),
    record: approvalRecord(object),
    isFromGit: Object.entries(GITOPS_ANNOTATIONS).every(([key, value]) => metadata.annotations?.[key] === value),
    ...(status === undefined ? {} : { status }),
  };
}

export function pruneRequest({ apiVersion, kind, metadata, spec, status }: Stored<ApprovalRequest>): StoredRequest {
  const { type, agent, nonce, subject, expiresAt, onTimeout, escalation } = spec;
  return {
    apiVersion,
    kind,
    metadata: pruneMetadata(metadata),
    spec: {
      type,
      agent,
      nonce,
      subject,
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(onTimeout === undefined ? {} : { onTimeout }),
      ...(escalation === undefined ? {} : { escalation }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

function pruneMetadata(metadata: StoredApproval['metadata']): StoredApproval['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const kept = { name, namespace, uid, resourceVersion, generation, creationTimestamp };
  return deletionTimestamp === undefined ? kept : { ...kept, deletionTimestamp };
}

/** The digest that a decision or a request about a promotion is about. */
export function promotionDigest({ promotion }: Approval['spec']['subject']): string | undefined {
  return promotion?.digest;
}
