import type { KubeClient } from '../../../kube/client/kube-client.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import { TYPES } from '../../kube/types.ts';
import type { OperatorAudit } from '../../ports.ts';
import { createRequest } from '../../sharing/create-request.ts';
import type { PromotionSnapshot } from '../observe.ts';
import { approvalRequest } from './approval-request.ts';

export interface RequestApprovalDeps {
  readonly client: Pick<KubeClient, 'create'>;
  readonly audit: OperatorAudit | undefined;
}

/** Creates the request of the state; a repetition changes nothing. Throws ApiError and TEMPER_BUS_*. */
export async function requestApproval(
  deps: RequestApprovalDeps,
  record: PromotionRecord,
  { agent, tool, observed: { tainted } }: PromotionSnapshot,
  signal: AbortSignal,
): Promise<void> {
  if (record.state !== 'AwaitingApproval' || agent === undefined || tool === undefined) return;
  await createRequest(deps, approvalRequest(record, agent, { tool, tainted }), signal);
}

/** Removes the request of a promotion that ended without a decision. Throws ApiError. */
export async function deleteRequest(
  client: Pick<KubeClient, 'delete'>,
  { agent, request }: Extract<PromotionRecord, { state: 'AwaitingApproval' }>,
  signal: AbortSignal,
): Promise<void> {
  await client.delete(TYPES.approvalRequests, { namespace: agent.namespace, name: request }, {}, signal);
}
