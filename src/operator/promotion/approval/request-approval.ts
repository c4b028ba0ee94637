import type { KubeClient } from '../../../kube/client/kube-client.ts';
import type { Clock } from '../../../lib/clock.ts';
import { approvalRules, requestTimes } from '../../../policy/approval-rules.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import type { Cache } from '../../kube/cache.ts';
import { type StoredPolicy, TYPES } from '../../kube/types.ts';
import { createRequest, type RequestWriterDeps } from '../../sharing/create-request.ts';
import { claimedUses } from '../../sharing/request-evidence.ts';
import type { LeavingTool } from '../../hygiene/leaving-tool.ts';
import type { PromotionSnapshot } from '../observe.ts';
import type { PromotionStore } from '../ports.ts';
import { approvalRequest } from './approval-request.ts';

export interface RequestApprovalDeps extends RequestWriterDeps {
  readonly store: Pick<PromotionStore, 'statistics'>;
  readonly clock: Clock;
  readonly policies: Cache<StoredPolicy>;
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
  const policy = deps.policies.get(namespace, agent.spec.trustPolicyRef.name);
  const times = requestTimes(approvalRules(policy?.spec.approvals), deps.clock.now());
  await createRequest(deps, approvalRequest(record, agent, { tool, tainted, claimed, leaving, times }), signal);
}

/** Removes the request of a promotion that ended without a decision. Throws ApiError. */
export async function deleteRequest(
  client: Pick<KubeClient, 'delete'>,
  { agent, request }: Extract<PromotionRecord, { state: 'AwaitingApproval' }>,
  signal: AbortSignal,
): Promise<void> {
  await client.delete(TYPES.approvalRequests, { namespace: agent.namespace, name: request }, {}, signal);
}
