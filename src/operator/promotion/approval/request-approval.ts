import type { KubeClient } from '../../../kube/client/kube-client.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import { TYPES } from '../../kube/types.ts';
import { createRequest, type RequestWriterDeps } from '../../sharing/create-request.ts';
import { claimedUses } from '../../sharing/request-evidence.ts';
import type { LeavingTool } from '../../hygiene/leaving-tool.ts';
import type { PromotionSnapshot } from '../observe.ts';
import type { PromotionStore } from '../ports.ts';
import { approvalRequest } from './approval-request.ts';

export interface RequestApprovalDeps extends RequestWriterDeps {
  readonly store: Pick<PromotionStore, 'statistics'>;
}

/** Creates the request of the state; a repetition changes nothing. Throws ApiError and TEMPER_BUS_*. */
export async function requestApproval(
  deps: RequestApprovalDeps,
  record: PromotionRecord,
  { agent, tool, observed: { tainted } }: PromotionSnapshot,
  leaving: LeavingTool | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (record.state !== 'AwaitingApproval' || agent === undefined || tool === undefined) return;
  const { namespace } = agent.metadata;
  const claimed = await claimedUses(deps.store, agent, { digest: record.digest, namespace }, []);
  await createRequest(deps, approvalRequest(record, agent, { tool, tainted, claimed, leaving }), signal);
}

/** Removes the request of a promotion that ended without a decision. Throws ApiError. */
export async function deleteRequest(
  client: Pick<KubeClient, 'delete'>,
  { agent, request }: Extract<PromotionRecord, { state: 'AwaitingApproval' }>,
  signal: AbortSignal,
): Promise<void> {
  await client.delete(TYPES.approvalRequests, { namespace: agent.namespace, name: request }, {}, signal);
}
