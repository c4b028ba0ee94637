import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { podState } from '../pods/pod-state.ts';
import type { Pod } from '../kube/types.ts';

export interface VerifierPlan {
  readonly remove: readonly Pod[];
  /** Number of pods to create. */
  readonly create: number;
}

export interface VerifierDemand {
  /** Pods that are kept Ready. */
  readonly warm: number;
  /** Pods at a time. */
  readonly max: number;
  /** Promotions that wait for a pod. */
  readonly waiting: number;
  /** Digest of the current template. */
  readonly digest: string;
  /** Whether a verification uses the pod, or may use it. */
  readonly isInUse: (podUid: string) => boolean;
  /** Whether this process has given the pod to a verification. The label of the pod may follow. */
  readonly isClaimed: (podUid: string) => boolean;
}

/**
 * Removes pods whose verification has ended, ended pods and pods of another template; creates pods for the promotions that wait, and the
 * warm ones. A pod serves one verification: whatever a hostile tool leaves in it meets no other tool. Pure.
 */
export function planVerifiers(pods: readonly Pod[], demand: VerifierDemand): VerifierPlan {
  const living = pods.filter((pod) => podState(pod).kind !== 'terminating');
  const used = living.filter((pod) => isAssigned(pod) || demand.isClaimed(pod.metadata.uid ?? ''));
  const free = living.filter((pod) => !used.includes(pod));
  const remove = [
    ...used.filter((pod) => !demand.isInUse(pod.metadata.uid ?? '')),
    ...free.filter((pod) => !isUsable(pod, demand.digest)),
  ];
  const usable = free.filter((pod) => !remove.includes(pod));
  const wanted = demand.warm + demand.waiting;
  const inUse = used.length - used.filter((pod) => remove.includes(pod)).length;
  const create = Math.max(0, Math.min(wanted, demand.max - inUse) - usable.length);
  return { remove: [...remove, ...readyFirst(usable).slice(Math.max(wanted, 0))], create };
}

/** The free pods that can take a verification now. */
export function readyVerifiers(
  pods: readonly Pod[],
  { digest, isClaimed }: Pick<VerifierDemand, 'digest' | 'isClaimed'>,
): Pod[] {
  return pods.filter(
    (pod) =>
      podState(pod).kind === 'ready' && !isAssigned(pod) && !isClaimed(pod.metadata.uid ?? '') && isUsable(pod, digest),
  );
}

function isAssigned({ metadata }: Pod): boolean {
  return metadata.labels?.[LABELS.verification] !== undefined;
}

function isUsable(pod: Pod, digest: string): boolean {
  return pod.metadata.annotations?.[ANNOTATIONS.template] === digest && podState(pod).kind !== 'ended';
}

function readyFirst(pods: readonly Pod[]): Pod[] {
  return pods.toSorted(
    (one, other) => Number(podState(other).kind === 'ready') - Number(podState(one).kind === 'ready'),
  );
}
