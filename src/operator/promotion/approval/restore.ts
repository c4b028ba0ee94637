import { API_VERSION } from '../../../api/names.ts';
import type { KubeClient } from '../../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { IdGenerator } from '../../../lib/ids.ts';
import type { PromotionKey } from '../../../nats/promotion/promotion-states.ts';
import { INDEX } from '../../agent/observe.ts';
import type { StoredRequest } from '../../approval/stored-decision.ts';
import { updateConditions } from '../../conditions.ts';
import type { Cache } from '../../kube/cache.ts';
import { type StoredAgent, TYPES } from '../../kube/types.ts';
import type { AdmissionAge } from '../../tool/admission-age.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from '../../tool/tool-index.ts';
import type { PromotionStore } from '../ports.ts';
import type { PromotionRecord } from '../../../tempering/promotion/promotion-record.ts';
import { queueKeyOf } from '../queue-key.ts';
import { agentToolName } from '../tool-object.ts';
import { type RequestObject, restoredPromotion } from './restored-promotion.ts';

export interface RestoreDeps extends Pick<ToolCaches, 'tools' | 'requests'> {
  readonly client: Pick<KubeClient, 'get' | 'patch'>;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly events: EventRecorder;
  readonly agents: Cache<StoredAgent>;
  readonly admissionAge: () => AdmissionAge;
  readonly store: Pick<PromotionStore, 'write'>;
}

const LOST =
  'NATS lost the promotion before the decision, and the request does not have all that the decision rests on; the agent has to forge and use the tool again';

/** Work queue keys of the promotions whose request is not without effect yet. Those that NATS still has are among them. */
export function requestedPromotions({ requests }: Pick<RestoreDeps, 'requests'>): string[] {
  return requests.list().flatMap((request) => {
    const key = keyOf(request);
    return key !== undefined && mayTakeEffect(request) ? [queueKeyOf(namedBy(request, key))] : [];
  });
}

/**
 * Writes the state of a promotion that waits for a user again, from its ApprovalRequest: NATS lost it, and etcd has the tool and what the
 * decision rests on. A request without these expires. False when there is nothing to restore. Throws ApiError and TEMPER_BUS_*.
 */
export async function restorePromotion(deps: RestoreDeps, key: PromotionKey, signal: AbortSignal): Promise<boolean> {
  const request = openRequest(deps, key);
  if (request === undefined) return false;
  const { namespace, name } = request.metadata;
  const stored = await deps.client.get<RequestObject>(TYPES.approvalRequests, { namespace, name }, signal);
  if (stored === undefined) return false;
  const attempt = deps.ids.next('promotion');
  const record = isChecked(deps, request)
    ? restoredPromotion(stored, { attempt, since: deps.clock.now().toISOString() })
    : undefined;
  if (record !== undefined) return deps.store.write(record, 0);
  if (stored.status?.decision === undefined) await expire(deps, stored, signal);
  return false;
}

/** Removes requests of an attempt that ended before the decision: an operator may have ended between the state and their removal. */
export async function removeUndecidable(
  { client, requests }: Pick<RestoreDeps, 'requests'> & { client: Pick<KubeClient, 'delete'> },
  { state, agent, digest }: PromotionRecord,
  signal: AbortSignal,
): Promise<void> {
  if (state !== 'Candidate') return;
  for (const request of requestsOf({ requests }, agent.namespace, { agentUid: agent.uid, digest })) {
    const { namespace, name, uid } = request.metadata;
    await client.delete(TYPES.approvalRequests, { namespace, name }, { uid }, signal);
  }
}

/** The youngest request that an approver can decide, or that one approved without an effect so far. */
function openRequest({ agents, requests, tools }: RestoreDeps, key: PromotionKey): StoredRequest | undefined {
  const [agent] = agents.byIndex(INDEX.uid, key.agentUid);
  if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) return undefined;
  const { namespace } = agent.metadata;
  const own = requestsOf({ requests }, namespace, key);
  const [youngest] = own.toSorted((one, other) => createdAt(other) - createdAt(one));
  const tool = youngest?.spec.subject.promotion?.tool;
  if (tool === undefined) return undefined;
  const object = tools.get(namespace, agentToolName(agent.metadata, tool, key.digest));
  return object?.status?.active === undefined ? youngest : undefined;
}

function requestsOf({ requests }: Pick<RestoreDeps, 'requests'>, namespace: string, key: PromotionKey) {
  return requests
    .byIndex(TOOL_INDEX.digest, inNamespace(namespace, key.digest))
    .filter((request) => keyOf(request)?.agentUid === key.agentUid && mayTakeEffect(request));
}

function mayTakeEffect({ metadata, status }: StoredRequest): boolean {
  const { decision } = status ?? {};
  return metadata.deletionTimestamp === undefined && (decision === undefined || decision === 'Approve');
}

/** Only the operator writes requests where the admission policies are in force. */
function isChecked({ admissionAge }: RestoreDeps, request: StoredRequest): boolean {
  const age = admissionAge();
  return 'since' in age && createdAt(request) >= age.since.getTime();
}

function createdAt({ metadata }: StoredRequest): number {
  return Date.parse(metadata.creationTimestamp ?? '');
}

/** Undefined for a request about anything but tier Agent. */
function keyOf({ spec }: StoredRequest): PromotionKey | undefined {
  const { promotion } = spec.subject;
  if (promotion?.tier !== 'Agent') return undefined;
  return { agentUid: spec.agent.uid, digest: promotion.digest as PromotionKey['digest'] };
}

function namedBy({ metadata, spec }: StoredRequest, { digest }: PromotionKey) {
  return { agent: { ...spec.agent, namespace: metadata.namespace }, digest };
}

async function expire({ client, clock, events }: RestoreDeps, request: RequestObject, signal: AbortSignal) {
  const { namespace, name, uid, generation } = request.metadata;
  const finding = { type: 'Decided', status: 'True', reason: 'Expired', message: LOST } as const;
  const conditions = updateConditions(request.status?.conditions, [], [finding], generation, clock.now());
  const status = { observedGeneration: generation, decision: 'Expired', conditions };
  await client.patch(TYPES.approvalRequests, { namespace, name }, { status }, signal, { subresource: 'status' });
  const subject = { apiVersion: API_VERSION, kind: 'ApprovalRequest', metadata: { namespace, name, uid } };
  events.record(subject, { type: 'Warning', reason: 'Expired', message: LOST });
}
