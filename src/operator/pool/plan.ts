import { podState } from '../agent/pod-state.ts';
import type { PodTemplate } from '../agent/pod-template.ts';
import type { Pod } from '../kube-types.ts';
import { digestOf } from './pool.ts';

export interface PoolPlan {
  readonly remove: readonly Pod[];
  /** How many to make. */
  readonly make: number;
}

/** Pure: pods of another template or at their end go, surplus ones too, and what is missing is made. */
export function planPool(warm: readonly Pod[], template: PodTemplate, size: number): PoolPlan {
  const alive = warm.filter((pod) => pod.metadata.deletionTimestamp === undefined);
  const good = alive.filter((pod) => digestOf(pod) === template.digest && podState(pod).kind !== 'ended');
  const bad = alive.filter((pod) => !good.includes(pod));
  // Those that are ready stay rather than those that are not.
  const byUse = [...good].sort((one, other) => Number(isReady(other)) - Number(isReady(one)));
  return { remove: [...bad, ...byUse.slice(size)], make: Math.max(size - good.length, 0) };
}

function isReady(pod: Pod): boolean {
  return podState(pod).kind === 'ready';
}
