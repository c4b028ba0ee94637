import { isDeepStrictEqual } from 'node:util';
import { PRIORITY, type Priority } from '../../kube/controller/priority-fifo.ts';
import type { ChangeSource } from '../../kube/informer/reflector.ts';
import type { WorkQueue } from '../../kube/controller/work-queue.ts';
import { type Change, keyOf, type KubeObject } from '../../kube/informer/store.ts';
import { promotionDigest, type StoredApproval, type StoredRequest } from '../approval/stored-decision.ts';
import { isDigest } from '../../lib/canonical.ts';
import { queueKeyOf } from '../promotion/queue-key.ts';
import type { Informers } from '../kube/informers.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { StoredTool } from './stored-tool.ts';
import { inNamespace, TOOL_INDEX, type ToolCaches } from './tool-index.ts';

/** The queues of tools and of decisions about them. Keys are `namespace/name`. */
export interface ToolQueues {
  readonly tools: WorkQueue;
  readonly requests: WorkQueue;
  readonly approvals: WorkQueue;
  /** Promotions to tier Agent that wait for a decision. */
  readonly promotions: WorkQueue;
}

export interface ToolRouteDeps extends ToolCaches {
  readonly informers: Pick<
    Informers,
    'tools' | 'approvals' | 'requests' | 'agents' | 'policies' | 'admissionPolicies' | 'admissionBindings'
  >;
  readonly queues: ToolQueues;
  readonly onToolDeleted: (tool: StoredTool) => void;
  readonly onRequestDeleted: (request: StoredRequest) => void;
  readonly onApprovalDeleted: (approval: StoredApproval) => void;
}

/** Adds to the queues what a change of a tool, a decision, an agent or a policy can affect, and nothing of another namespace. */
export function routeToolEvents(deps: ToolRouteDeps): void {
  const { informers, queues } = deps;
  informers.tools.subscribe((change, source) => onTool(deps, change, priorityOf(source)));
  informers.requests.subscribe((change, source) => {
    queues.requests.add(keyOf(change.object), priorityOf(source));
    addWithDigest(deps, change.object, promotionDigest(change.object.spec.subject), priorityOf(source));
    if (change.type === 'deleted') deps.onRequestDeleted(change.object);
  });
  informers.approvals.subscribe((change, source) => {
    // A written status of an Approval decides nothing.
    if (isOnlyStatus(change)) return;
    queues.approvals.add(keyOf(change.object), priorityOf(source));
    addWithDigest(deps, change.object, promotionDigest(change.object.record.subject), priorityOf(source));
    if (change.type === 'deleted') deps.onApprovalDeleted(change.object);
  });
  informers.agents.subscribe((change) => onAgent(deps, change));
  informers.policies.subscribe((change) => onPolicy(deps, change));
  for (const { subscribe } of [informers.admissionPolicies, informers.admissionBindings]) {
    subscribe((_change, source) => (source === 'change' ? addAll(deps) : undefined));
  }
}

function priorityOf(source: ChangeSource): Priority {
  return source === 'change' ? PRIORITY.normal : PRIORITY.resync;
}

function isOnlyStatus(change: Change<KubeObject>): boolean {
  return change.type === 'updated' && change.before.metadata.generation === change.object.metadata.generation;
}

function onTool(deps: ToolRouteDeps, change: Change<StoredTool>, priority: Priority): void {
  const { object } = change;
  deps.queues.tools.add(keyOf(object), priority);
  if (change.type === 'deleted') deps.onToolDeleted(object);
  if (change.type === 'updated' && change.before.status?.active === object.status?.active) return;
  const { namespace } = object.metadata;
  const { tool, digest } = object.facts;
  const { tools } = deps;
  for (const other of [
    ...tools.byIndex(TOOL_INDEX.name, inNamespace(namespace, tool)),
    ...tools.byIndex(TOOL_INDEX.steps, inNamespace(namespace, digest)),
  ])
    deps.queues.tools.add(keyOf(other), priority);
  addWithDigest(deps, object, digest, priority);
}

/** Everything of the namespace that is about the digest. */
function addWithDigest(
  { tools, requests, approvals, queues }: ToolRouteDeps,
  { metadata }: KubeObject,
  digest: string | undefined,
  priority: Priority,
): void {
  if (digest === undefined) return;
  const key = inNamespace(metadata.namespace ?? '', digest);
  for (const tool of tools.byIndex(TOOL_INDEX.digest, key)) queues.tools.add(keyOf(tool), priority);
  for (const request of requests.byIndex(TOOL_INDEX.digest, key)) {
    queues.requests.add(keyOf(request), priority);
    const promotion = promotionKeyOf(request);
    if (promotion !== undefined) queues.promotions.add(promotion, priority);
  }
  for (const approval of approvals.byIndex(TOOL_INDEX.digest, key)) queues.approvals.add(keyOf(approval), priority);
}

/** The work queue key of the promotion that waits for the request; undefined for one about tier Shared. */
function promotionKeyOf({ metadata, spec }: StoredRequest): string | undefined {
  const { promotion } = spec.subject;
  if (promotion?.tier !== 'Agent' || !isDigest(promotion.digest)) return undefined;
  return queueKeyOf({ agent: { ...spec.agent, namespace: metadata.namespace }, digest: promotion.digest });
}

/** The status of an agent decides with its level and its deactivated tools only. */
function onAgent({ tools, queues }: ToolRouteDeps, change: Change<StoredAgent>): void {
  const { object } = change;
  if (isOnlyStatus(change) && change.type === 'updated' && decidesTheSame(change.before, object)) return;
  for (const { digest } of object.status?.deactivatedTools ?? []) {
    const shared = tools.byIndex(TOOL_INDEX.digest, inNamespace(object.metadata.namespace, digest));
    for (const tool of shared) queues.tools.add(keyOf(tool), PRIORITY.resync);
  }
  const key = inNamespace(object.metadata.namespace, object.metadata.name);
  for (const tool of tools.byIndex(TOOL_INDEX.agent, key)) queues.tools.add(keyOf(tool), PRIORITY.resync);
}

function decidesTheSame({ status: before }: StoredAgent, { status: after }: StoredAgent): boolean {
  return (
    before?.level === after?.level && isDeepStrictEqual(before?.deactivatedTools ?? [], after?.deactivatedTools ?? [])
  );
}

function onPolicy({ tools, queues }: ToolRouteDeps, change: Change<StoredPolicy>): void {
  if (isOnlyStatus(change)) return;
  for (const tool of tools.byIndex(TOOL_INDEX.namespace, change.object.metadata.namespace))
    queues.tools.add(keyOf(tool), PRIORITY.resync);
}

function addAll({ tools, requests, approvals, queues }: ToolRouteDeps): void {
  for (const tool of tools.list()) queues.tools.add(keyOf(tool), PRIORITY.resync);
  for (const request of requests.list()) queues.requests.add(keyOf(request), PRIORITY.resync);
  for (const approval of approvals.list()) queues.approvals.add(keyOf(approval), PRIORITY.resync);
}
