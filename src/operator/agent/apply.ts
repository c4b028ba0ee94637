import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import { printable } from '../../lib/escape.ts';
import { ApiError, type KubeClient } from '../../kube/client.ts';
import { FIELD_MANAGER, type Pod, type StoredAgent, TYPES } from '../kube-types.ts';
import { holds } from '../same-fields.ts';
import type { Plan } from './plan.ts';
import { type PodTemplate, podLabels } from './pod-template.ts';

/** What became of the plan. */
export type Applied =
  | { readonly kind: 'bound'; readonly pod: Pod; readonly claimed?: boolean }
  | { readonly kind: 'unbound' }
  /** A pod of that name is still going. */
  | { readonly kind: 'waiting'; readonly message: string }
  | { readonly kind: 'refused'; readonly reason: 'PodRejected' | 'PodNameTaken'; readonly message: string };

const REJECTED = new Set([400, 403, 422]);
const SERVER_ERROR = 500;
const TOLD_AFTER = 3;

/** Carries a plan out. Throws ApiError; nothing it did before is harmed by doing it again. */
export async function apply(client: KubeClient, agent: StoredAgent, plan: Plan, signal: AbortSignal): Promise<Applied> {
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

/** The very pod that was seen, never another of its name. */
export async function removePod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata;
  await client.delete(TYPES.pods, { namespace, name }, uid === undefined ? {} : { uid }, signal);
}

/** Makes the warm pod this agent's for good: it goes with the agent, and no other is ever given it, whatever is lost meanwhile. */
async function claim(client: KubeClient, agent: StoredAgent, pod: Pod, signal: AbortSignal): Promise<Applied> {
  const { namespace = '', name, uid } = pod.metadata;
  const metadata = {
    uid,
    labels: { [LABELS.agentUid]: agent.metadata.uid },
    annotations: { [ANNOTATIONS.agent]: agent.metadata.name },
    ownerReferences: [ownerReference(agent)],
  };
  try {
    const taken = await client.patch<Pod>(TYPES.pods, { namespace, name }, { metadata }, signal);
    return { kind: 'bound', pod: taken, claimed: true };
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error;
    return { kind: 'waiting', message: 'the warm pod it was to have is gone; another is looked for' };
  }
}

async function create(
  client: KubeClient,
  agent: StoredAgent,
  name: string,
  template: PodTemplate,
  signal: AbortSignal,
): Promise<Applied> {
  const { namespace } = agent.metadata;
  try {
    const made = await client.create<Pod>(TYPES.pods, podOf(agent, name, template), signal, { manager: FIELD_MANAGER });
    return { kind: 'bound', pod: made };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409 && error.reason === 'AlreadyExists') {
      return examine(client, agent, { namespace, name }, template, signal);
    }
    throw error;
  }
}

/**
 * What to tell people of a call that went wrong; undefined where trying again may mend it unseen. A server that fails is told of once it
 * did so a few times in a row: that is how a webhook that cannot be reached shows.
 */
export function refusalBy(error: unknown, times: number): Applied | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const isFailing = error.status >= SERVER_ERROR && times >= TOLD_AFTER;
  if (!REJECTED.has(error.status) && !isFailing) return undefined;
  const message = `the API server refuses what the agent needs: ${printable(error.message, 1_500)}; change what it names, it is tried again within five minutes`;
  return { kind: 'refused', reason: 'PodRejected', message };
}

/**
 * Somebody has the name. Ours is what carries the label and the owner that
 * only we write and holds nothing but what we put in; anything else is left alone.
 */
async function examine(
  client: KubeClient,
  agent: StoredAgent,
  ref: { namespace: string; name: string },
  template: PodTemplate,
  signal: AbortSignal,
): Promise<Applied> {
  const found = await client.get<Pod>(TYPES.pods, ref, signal);
  if (found === undefined) return { kind: 'waiting', message: `pod "${ref.name}" has just gone; it is made again` };
  const isOutdated = found.metadata.annotations?.[ANNOTATIONS.template] !== template.digest;
  if (!isOurs(found, agent) || (!isOutdated && !holds(found.spec, template.spec))) {
    const message = `pod "${ref.name}" exists and is not the operator's; remove it: kubectl delete pod ${ref.name} --namespace ${ref.namespace}`;
    return { kind: 'refused', reason: 'PodNameTaken', message };
  }
  if (found.metadata.deletionTimestamp !== undefined) {
    return { kind: 'waiting', message: `pod "${ref.name}" of before is still ending` };
  }
  const hasEnded = found.status?.phase === 'Failed' || found.status?.phase === 'Succeeded';
  if (hasEnded || isOutdated) {
    await removePod(client, found, signal);
    return { kind: 'waiting', message: `pod "${ref.name}" of before is being removed` };
  }
  return { kind: 'bound', pod: found };
}

export function isOurs(pod: Pod, agent: StoredAgent): boolean {
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

/** The workspace goes with the pod, and the pod is one of a kind: an autoscaler may all the same move it. */
export function podAnnotations(template: PodTemplate, agentName?: string): Record<string, string> {
  return {
    [ANNOTATIONS.template]: template.digest,
    'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true',
    ...(agentName === undefined ? {} : { [ANNOTATIONS.agent]: agentName }),
  };
}
