import { LABELS } from '../../api/cluster.ts';
import { API_VERSION } from '../../api/names.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { type Pod, type StoredAgent, TYPES } from '../kube/types.ts';

/** Does the pod have the label and the owner reference that only the operator sets? */
export function isOwnedBy(pod: Pod, agent: StoredAgent): boolean {
  const { labels, ownerReferences } = pod.metadata;
  const { uid } = agent.metadata;
  const owned = ownerReferences?.some((owner) => owner.uid === uid && owner.controller === true) ?? false;
  return owned && labels?.[LABELS.agentUid] === uid;
}

export function ownerReference({ metadata }: StoredAgent) {
  return { apiVersion: API_VERSION, kind: 'Agent', name: metadata.name, uid: metadata.uid, controller: true };
}

/** The work queue key of the agent that owns the pod. */
export function ownerKeyOf({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'Agent' && controller === true);
  return owner === undefined ? undefined : `${metadata.namespace}/${owner.name}`;
}

/** Deletes exactly the observed pod: the UID precondition protects a newer pod with the same name. */
export async function removePod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata;
  await client.delete(TYPES.pods, { namespace, name }, uid === undefined ? {} : { uid }, signal);
}
