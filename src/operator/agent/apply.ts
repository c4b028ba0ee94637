import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import { printable } from '../../lib/printable.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import { FIELD_MANAGER, type Pod, type StoredAgent, TYPES } from '../kube/types.ts';
import { containsFields } from '../kube/subset-match.ts';
import type { PodPlan } from './plan.ts';
import { type PodTemplate, podLabels } from '../pods/pod-template.ts';

/** The result of applying a plan. */
export type ApplyResult =
  | { readonly kind: 'bound'; readonly pod: Pod; readonly claimed?: boolean }
  | { readonly kind: 'unbound' }
  /** The pod cannot be bound yet; `message` states why. */
  | { readonly kind: 'waiting'; readonly message: string }
  | { readonly kind: 'refused'; readonly reason: 'PodRejected' | 'PodNameConflict'; readonly message: string };

const REJECTION_STATUSES = new Set([400, 403, 422]);
const SERVER_ERROR = 500;
const MIN_FAILURES_TO_REPORT = 3;

/** Applies a plan. Throws ApiError. Idempotent: a retry after an error continues where the last attempt stopped. */
export async function apply(
  client: KubeClient,
  agent: StoredAgent,
  plan: PodPlan,
  signal: AbortSignal,
): Promise<ApplyResult> {
  for (const pod of plan.remove) await removePod(client, pod, signal);
  const { step } = plan;
  switch (step.kind) {
    case 'none':
      return { kind: 'unbound' };
    case 'keep':
    case 'bind':
      return { kind: 'bound', pod: step.pod };
    case 'claim':
      return claim(client, agent, step.pod, signal);
    case 'create':
      return create(client, agent, step.name, step.template, signal);
  }
}

/** Deletes exactly the observed pod: the UID precondition protects a newer pod with the same name. */
export async function removePod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata;
  await client.delete(TYPES.pods, { namespace, name }, uid === undefined ? {} : { uid }, signal);
}

/**
 * Binds the warm pod permanently to this agent: the owner reference deletes the pod with the agent, and the label prevents another agent
 * from claiming it, even if the operator restarts before it writes the status.
 */
async function claim(client: KubeClient, agent: StoredAgent, pod: Pod, signal: AbortSignal): Promise<ApplyResult> {
  const { namespace = '', name, uid } = pod.metadata;
  const metadata = {
    uid,
    labels: { [LABELS.agentUid]: agent.metadata.uid },
    annotations: { [ANNOTATIONS.agent]: agent.metadata.name },
    ownerReferences: [ownerReference(agent)],
  };
  try {
    const claimed = await client.patch<Pod>(TYPES.pods, { namespace, name }, { metadata }, signal);
    return { kind: 'bound', pod: claimed, claimed: true };
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error;
    return { kind: 'waiting', message: 'the selected warm pod was deleted or changed; selecting another pod' };
  }
}

async function create(
  client: KubeClient,
  agent: StoredAgent,
  name: string,
  template: PodTemplate,
  signal: AbortSignal,
): Promise<ApplyResult> {
  const { namespace } = agent.metadata;
  try {
    const created = await client.create<Pod>(TYPES.pods, podOf(agent, name, template), signal, {
      manager: FIELD_MANAGER,
    });
    return { kind: 'bound', pod: created };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409 && error.reason === 'AlreadyExists') {
      return checkExisting(client, agent, { namespace, name }, template, signal);
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
 * Handles an existing pod with the same name. The operator owns the pod only if it has the label and owner reference that only the
 * operator sets, and a spec that the operator created. It never touches any other pod.
 */
async function checkExisting(
  client: KubeClient,
  agent: StoredAgent,
  ref: { namespace: string; name: string },
  template: PodTemplate,
  signal: AbortSignal,
): Promise<ApplyResult> {
  const existing = await client.get<Pod>(TYPES.pods, ref, signal);
  if (existing === undefined)
    return { kind: 'waiting', message: `pod "${ref.name}" was just deleted; creating it again` };
  const isOutdated = existing.metadata.annotations?.[ANNOTATIONS.template] !== template.digest;
  if (!isOwnedBy(existing, agent) || (!isOutdated && !containsFields(existing.spec, template.spec))) {
    const message = `pod "${ref.name}" exists and does not belong to the operator; delete it: kubectl delete pod ${ref.name} --namespace ${ref.namespace}`;
    return { kind: 'refused', reason: 'PodNameConflict', message };
  }
  if (existing.metadata.deletionTimestamp !== undefined) {
    return { kind: 'waiting', message: `the previous pod "${ref.name}" is still terminating` };
  }
  const hasEnded = existing.status?.phase === 'Failed' || existing.status?.phase === 'Succeeded';
  if (hasEnded || isOutdated) {
    await removePod(client, existing, signal);
    return { kind: 'waiting', message: `the previous pod "${ref.name}" is being deleted` };
  }
  return { kind: 'bound', pod: existing };
}

export function isOwnedBy(pod: Pod, agent: StoredAgent): boolean {
  const { labels, ownerReferences } = pod.metadata;
  const { uid } = agent.metadata;
  const owned = ownerReferences?.some((owner) => owner.uid === uid && owner.controller === true) ?? false;
  return owned && labels?.[LABELS.agentUid] === uid;
}

function ownerReference({ metadata }: StoredAgent) {
  return { apiVersion: API_VERSION, kind: 'Agent', name: metadata.name, uid: metadata.uid, controller: true };
}

function podOf(agent: StoredAgent, name: string, template: PodTemplate) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: agent.metadata.namespace,
      labels: podLabels(template, agent.metadata.uid),
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
