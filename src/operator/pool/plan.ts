import { podState } from '../pods/pod-state.ts';
import type { PodTemplate } from '../pods/pod-template.ts';
import type { Pod } from '../kube/types.ts';
import { templateDigest } from './warm-pool.ts';

export interface PoolPlan {
  readonly remove: readonly Pod[];
  /** Number of pods to create. */
  readonly create: number;
}

/** Removes ended pods, pods of another template and surplus pods; creates missing ones. Pure. */
export function planPool(warm: readonly Pod[], template: PodTemplate, size: number): PoolPlan {
  const current = planRemoval(warm);
  const usable = current.filter((pod) => templateDigest(pod) === template.digest && podState(pod).kind !== 'ended');
  const unusable = current.filter((pod) => !usable.includes(pod));
  // Ready pods are kept before unready ones.
  const readyFirst = [...usable].sort((one, other) => Number(isReady(other)) - Number(isReady(one)));
  return { remove: [...unusable, ...readyFirst.slice(size)], create: Math.max(size - usable.length, 0) };
}

/** The pods to remove when no agent can claim any of them. Pure. */
export function planRemoval(warm: readonly Pod[]): Pod[] {
  return warm.filter((pod) => pod.metadata.deletionTimestamp === undefined);
}

function isReady(pod: Pod): boolean {
  return podState(pod).kind === 'ready';
}
