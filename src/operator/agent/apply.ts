import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { printable } from '../../lib/printable.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { FIELD_MANAGER, type Pod, type StoredAgent, TYPES } from '../kube/types.ts';
import type { PodPlan } from './plan.ts';
import { isOwnedBy, ownerReference, removePod } from '../pods/pod-ownership.ts';
import { type PodTemplate, podLabels } from '../pods/pod-template.ts';
import { matchesTemplate } from '../pods/template-match.ts';

/** The result of applying a plan. */
export type ApplyResult =
  /** `origin` is absent for a pod that belonged to the agent before. */
  | { readonly kind: 'bound'; readonly pod: Pod; readonly origin?: 'created' | 'claimed' }
  | { readonly kind: 'unbound' }
  /** The pod cannot be bound yet; `message` states why. */
  | { readonly kind: 'waiting'; readonly message: string; readonly retryAfterMs?: number }
  | { readonly kind: 'refused'; readonly reason: 'PodRejected' | 'PodNameConflict'; readonly message: string };

const REJECTION_STATUSES = new Set([400, 403, 422]);
const SERVER_ERROR = 500;
const MIN_FAILURES_TO_REPORT = 3;
/** Attempts to claim a warm pod that the kubelet changes at the same time. */
const MAX_CLAIM_ATTEMPTS = 3;

/** The agent whose plan is applied. */
export interface ApplyTarget {
  readonly agent: StoredAgent;
  /** Whether only the operator can set the labels of agent pods in the namespace. */
  readonly isReserved: boolean;
  /** Whether its pod may reach the egress proxy. */
  readonly reachesHosts: boolean;
}

/** Applies a plan. Throws ApiError. Idempotent: a retry after an error continues where the last attempt stopped. */
export async function apply(
  client: KubeClient,
  target: ApplyTarget,
  plan: PodPlan,
  signal: AbortSignal,
): Promise<ApplyResult> {
  for (const pod of plan.remove) await removePod(client, pod, signal);
  const { step } = plan;
  switch (step.kind) {
    case 'none':
      return { kind: 'unbound' };
    case 'keep':
      return { kind: 'bound', pod: await withEgressLabel(client, target, step.pod, signal) };
    case 'bind':
      return checkExisting(client, target, step.pod.metadata.name, step.template, signal);
    case 'claim':
      return claim(client, target, step.pod, signal);
    case 'create':
      return create(client, target, step.name, step.template, signal);
  }
}

/**
 * Binds the warm pod permanently to this agent: the owner reference deletes the pod with the agent, and the label prevents another agent
 * from claiming it, even if the operator restarts before it writes the status. The patch applies only to the version of the pod that was
 * read, because another agent may have claimed the pod by a write whose response was lost, or by a write of the previous leader.
 */
async function claim(client: KubeClient, target: ApplyTarget, pod: Pod, signal: AbortSignal): Promise<ApplyResult> {
  const { namespace = '', name, uid } = pod.metadata;
  let current: Pod | undefined = pod;
  for (let attempt = 0; attempt < MAX_CLAIM_ATTEMPTS && current !== undefined; attempt += 1) {
    try {
      const claimed = await client.patch<Pod>(TYPES.pods, { namespace, name }, claimPatch(target, current), signal);
      return { kind: 'bound', pod: claimed, origin: 'claimed' };
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error;
    }
    const live: Pod | undefined = await client.get<Pod>(TYPES.pods, { namespace, name }, signal);
    current = live !== undefined && live.metadata.uid === uid && isUnclaimed(live) ? live : undefined;
  }
  return { kind: 'waiting', message: 'the selected warm pod was deleted or changed; selecting another pod' };
}

function claimPatch(target: ApplyTarget, { metadata: { uid, resourceVersion } }: Pod) {
  const { agent } = target;
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: agentLabels(target),
      annotations: { [ANNOTATIONS.agent]: agent.metadata.name },
      ownerReferences: [ownerReference(agent)],
    },
  };
}

/** Labels of the pod of the agent beside those of a warm pod. */
function agentLabels({ agent, reachesHosts }: ApplyTarget): Record<string, string> {
  return { [LABELS.agentUid]: agent.metadata.uid, ...(reachesHosts ? { [LABELS.egress]: 'true' } : {}) };
}

/** Opens or closes the way of a pod to the egress proxy after the grants of its agent changed. */
async function withEgressLabel(
  client: KubeClient,
  { reachesHosts }: ApplyTarget,
  pod: Pod,
  signal: AbortSignal,
): Promise<Pod> {
  const { namespace = '', name, uid, labels } = pod.metadata;
  if ((labels?.[LABELS.egress] === 'true') === reachesHosts) return pod;
  const patch = { metadata: { uid, labels: { [LABELS.egress]: reachesHosts ? 'true' : null } } };
  return client.patch<Pod>(TYPES.pods, { namespace, name }, patch, signal);
}

function isUnclaimed({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && metadata.labels?.[LABELS.agentUid] === undefined;
}

async function create(
  client: KubeClient,
  target: ApplyTarget,
  name: string,
  template: PodTemplate,
  signal: AbortSignal,
): Promise<ApplyResult> {
  try {
    const created = await client.create<Pod>(TYPES.pods, podOf(target, name, template), signal, {
      manager: FIELD_MANAGER,
    });
    return { kind: 'bound', pod: created, origin: 'created' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409 && error.reason === 'AlreadyExists') {
      return checkExisting(client, target, name, template, signal);
    }
    throw error;
  }
}

/**
 * The result to report for a failed API call; undefined when a retry may fix it unnoticed. A server error is reported only after several
 * consecutive failures: an unreachable webhook appears as a server error.
 */
export function rejectionOf(error: unknown, times: number): ApplyResult | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const isFailing = error.status >= SERVER_ERROR && times >= MIN_FAILURES_TO_REPORT;
  if (!REJECTION_STATUSES.has(error.status) && !isFailing) return undefined;
  const message = `the API server rejected an object that the agent needs: ${printable(error.message, 1_500)}; fix the cause, the operator retries within five minutes`;
  return { kind: 'refused', reason: 'PodRejected', message };
}

/**
 * Handles an existing pod with the same name. The operator owns the pod only if it has the label and the owner reference that only the
 * operator sets; it never touches any other pod. It replaces an own pod that was not created from the template.
 */
async function checkExisting(
  client: KubeClient,
  target: ApplyTarget,
  name: string,
  template: PodTemplate,
  signal: AbortSignal,
): Promise<ApplyResult> {
  const { agent, isReserved } = target;
  const { namespace } = agent.metadata;
  const existing = await client.get<Pod>(TYPES.pods, { namespace, name }, signal);
  if (existing === undefined) return { kind: 'waiting', message: `pod "${name}" was just deleted; creating it again` };
  if (!isOwnedBy(existing, agent)) {
    const message = `pod "${name}" exists and does not belong to the operator; delete it: kubectl delete pod ${name} --namespace ${namespace}`;
    return { kind: 'refused', reason: 'PodNameConflict', message };
  }
  if (existing.metadata.deletionTimestamp !== undefined) {
    return { kind: 'waiting', message: `the previous pod "${name}" is still terminating` };
  }
  const hasEnded = existing.status?.phase === 'Failed' || existing.status?.phase === 'Succeeded';
  const isOutdated = existing.metadata.annotations?.[ANNOTATIONS.template] !== template.digest;
  if (hasEnded || isOutdated || !matchesTemplate(existing.spec, template, isReserved)) {
    await removePod(client, existing, signal);
    return { kind: 'waiting', message: `the previous pod "${name}" is being deleted` };
  }
  return { kind: 'bound', pod: await withEgressLabel(client, target, existing, signal) };
}

function podOf(target: ApplyTarget, name: string, template: PodTemplate) {
  const { agent } = target;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: agent.metadata.namespace,
      labels: { ...podLabels(template), ...agentLabels(target) },
      annotations: podAnnotations(template, agent.metadata.name),
      ownerReferences: [ownerReference(agent)],
    },
    spec: template.spec,
  };
}

/** The cluster autoscaler may evict the pod, although it uses local storage: losing the workspace is acceptable. */
export function podAnnotations(template: PodTemplate, agentName?: string): Record<string, string> {
  return {
    [ANNOTATIONS.template]: template.digest,
    'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true',
    ...(agentName === undefined ? {} : { [ANNOTATIONS.agent]: agentName }),
  };
}
