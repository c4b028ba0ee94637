import { LABELS } from '../../../src/api/cluster.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { createKubeClient } from '../../../src/kube/client/http-kube-client.ts';
import { ApiError, type KubeClient } from '../../../src/kube/client/kube-client.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { FollowedObjects } from './followed-objects.ts';

/** After a failure, and for pods of a namespace that is not left alone any more. */
const RETRY_MS = 100;

/**
 * Stands in for the kubelets of a control plane without nodes: marks every pod with the label Ready, and removes pods that are being deleted. Leaves
 * pods of the `withoutKubelet` namespaces alone. Runs until the signal aborts.
 */
export async function runFakeKubelet(
  transport: Transport,
  untended: ReadonlySet<string>,
  signal: AbortSignal,
  label: string = LABELS.agentPod,
): Promise<void> {
  const client = createKubeClient(transport);
  await using pods = new FollowedObjects<Pod>(transport, { type: TYPES.pods, labelSelector: `${label}=true` });
  while (!signal.aborted) {
    for (const pod of pods.list().filter(needsKubelet)) {
      if (!untended.has(pod.metadata.namespace ?? '')) await trySync(client, pod, signal);
    }
    await pods.changed(RETRY_MS, signal);
  }
}

/** A kubelet outlives a server that refuses, is away or is slow, and a pod that is gone delays no other. */
async function trySync(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  try {
    await syncPod(client, pod, signal);
  } catch (error) {
    if (!signal.aborted && !(error instanceof ApiError) && !isTemperError(error)) throw error;
  }
}

function needsKubelet({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return true;
  return status?.conditions?.some(({ type }) => type === 'Ready') !== true;
}

async function syncPod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', uid, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) {
    // By UID: the list may be older than the agent's next pod, which has the same name after a suspension.
    const precondition = uid === undefined ? {} : { uid };
    await client.delete(TYPES.pods, { namespace, name }, { ...precondition, gracePeriodSeconds: 0 }, signal);
    return;
  }
  await client.patch(TYPES.pods, { namespace, name }, { status: RUNNING_STATUS }, signal, { subresource: 'status' });
}

const RUNNING_STATUS = {
  phase: 'Running',
  conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' })),
  containerStatuses: ['agent', 'sandbox'].map((name) => ({
    name,
    ready: true,
    restartCount: 0,
    image: 'temper',
    imageID: 'temper',
    state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
  })),
};
