import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { FIELD_MANAGER, TYPES } from '../kube/types.ts';
import type { OperatorAudit } from '../ports.ts';

export interface RequestWriterDeps {
  readonly client: Pick<KubeClient, 'create'>;
  readonly audit: OperatorAudit | undefined;
}

/**
 * Creates the request, after its audit record. The name is the same for the same attempt, so a repetition after a crash finds the request
 * that exists. Throws ApiError and TEMPER_BUS_*.
 */
export async function createRequest(
  { client, audit }: RequestWriterDeps,
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
  try {
    await client.create<KubeObject>(TYPES.approvalRequests, request, signal, { manager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  }
}
