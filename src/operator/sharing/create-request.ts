import { headMembers } from '../../audit/known-head.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import type { ApprovalRequest, PromotionReview } from '../../api/v1alpha1/approvalrequest.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { FIELD_MANAGER, TYPES } from '../kube/types.ts';
import type { OperatorAudit } from '../ports.ts';

export interface RequestWriterDeps {
  readonly client: Pick<KubeClient, 'create'>;
  readonly audit: OperatorAudit | undefined;
  /** Reads the newest signed head of the audit stream. */
  readonly auditHead: ReadAuditHead;
}

/** Undefined while nothing is signed, and when the heads cannot be read. Throws ApiError. */
export type ReadAuditHead = (signal: AbortSignal) => Promise<SignedHead | undefined>;

/**
 * Creates the request with the newest signed head, after its audit record. The name is the same for the same attempt, so a repetition after a crash finds the request
 * that exists. Throws ApiError and TEMPER_BUS_*.
 */
export async function createRequest(
  { client, audit, auditHead }: RequestWriterDeps,
  request: ApprovalRequest,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = '' } = request.metadata;
  const { agent, subject, summary } = request.spec;
  await audit?.append(
    namespace,
    {
      action: 'approval.requested',
      actor: `agent/${agent.name}`,
      evidence: 'observed',
      subject: subject.promotion?.digest ?? name,
      facts: {
        request: name,
        namespace,
        tool: subject.promotion?.tool ?? '',
        tier: subject.promotion?.tier ?? 'Shared',
        summary,
      },
    },
    `approval.requested/${name}`,
  );
  const complete = withHead(request, await auditHead(signal));
  try {
    await client.create<KubeObject>(TYPES.approvalRequests, complete, signal, { manager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  }
}

/** The head lies before the records of the request itself: it shows what was recorded until then. */
function withHead(request: ApprovalRequest, head: SignedHead | undefined): ApprovalRequest {
  const { review } = request.spec;
  if (head === undefined || review === undefined) return request;
  const auditHead = headMembers(head) as unknown as NonNullable<PromotionReview['auditHead']>;
  return { ...request, spec: { ...request.spec, review: { ...review, auditHead } } };
}
