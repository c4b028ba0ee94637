import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../../src/api/cluster.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { ApiError, type KubeClient } from '../../../src/kube/client/kube-client.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';

/**
 * Stands in for the kubelets of a control plane without nodes: marks every pod with the label Ready, and removes pods that are being deleted. Leaves
 * pods of the `withoutKubelet` namespaces alone. Runs until the signal aborts.
 */
export async function runFakeKubelet(
  client: KubeClient,
  untended: ReadonlySet<string>,
  signal: AbortSignal,
  label: string = LABELS.agentPod,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const pods = await client.list<Pod>(TYPES.pods, { labelSelector: `${label}=true` }, signal);
      for (const pod of pods) {
        if (!untended.has(pod.metadata.namespace ?? '')) await syncPod(client, pod, signal);
      }
    } catch (error) {
      // A kubelet outlives a server that refuses, is away or is slow.
      if (!signal.aborted && !(error instanceof ApiError) && !isTemperError(error)) throw error;
    }
    await sleep(20, undefined, { signal }).catch(() => {});
  }
}

async function syncPod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) {
    await client.delete(TYPES.pods, { namespace, name }, { gracePeriodSeconds: 0 }, signal);
    return;
  }
  if (pod.status?.conditions?.some(({ type }) => type === 'Ready') === true) return;
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
