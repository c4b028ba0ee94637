import { LABELS } from '../../../src/api/cluster.ts';
import type { Pod } from '../../../src/operator/kube/types.ts';
import { podState } from '../../../src/operator/pods/pod-state.ts';
import type { FollowedObjects } from '../api-server/followed-objects.ts';

/** Waits until the only verifier pod is Ready and unused, and returns it. */
export function warmVerifier(pods: FollowedObjects<Pod>, signal: AbortSignal): Promise<Pod> {
  return pods.until(([pod, ...others]) => {
    if (pod === undefined || others.length > 0 || podState(pod).kind !== 'ready') return undefined;
    return pod.metadata.labels?.[LABELS.verification] === undefined ? pod : undefined;
  }, signal);
}
