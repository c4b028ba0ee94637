import { printable } from '../../lib/printable.ts';
import type { ContainerStatus, Pod } from '../kube/types.ts';

/** The state of a pod, derived from its status. Messages come from kubelet, scheduler and containers, so they are escaped and truncated. */
export type PodState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'unschedulable'; readonly message: string }
  | { readonly kind: 'imagePullFailed'; readonly message: string }
  | { readonly kind: 'crashLooping'; readonly message: string }
  /** The state of the containers is unknown: the node stopped reporting. */
  | { readonly kind: 'nodeNotReady'; readonly node: string }
  /** The pod will not run again: it ended, was evicted, or its node was deleted. */
  | { readonly kind: 'ended'; readonly message: string }
  | { readonly kind: 'terminating' };

const IMAGE_REASONS = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
]);

/** From this number of restarts, an unready container counts as crash looping, even while it is running. */
const MIN_CRASH_RESTARTS = 3;
const MAX_MESSAGE_LENGTH = 400;

export function podState(pod: Pod): PodState {
  if (pod.metadata.deletionTimestamp !== undefined) return { kind: 'terminating' };
  const { phase } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') return { kind: 'ended', message: endMessage(pod) };
  const failure = failureOf(pod);
  if (failure !== undefined) return failure;
  if (conditionOf(pod, 'Ready')?.status === 'True') return { kind: 'ready' };
  return stateOfUnready(pod);
}

function stateOfUnready(pod: Pod): PodState {
  if (isNodeLost(pod)) return { kind: 'nodeNotReady', node: tail(pod.spec?.nodeName ?? 'unknown') };
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    return { kind: 'unschedulable', message: tail(scheduled.message ?? 'no node fits') };
  }
  return { kind: 'starting' };
}

/** Do all containers run? They need not be ready: a warm pod becomes ready only after its assignment. */
export function isRunning(pod: Pod): boolean {
  const { kind } = podState(pod);
  const containers = pod.status?.containerStatuses ?? [];
  const run = containers.length > 0 && containers.every(({ state }) => state?.running !== undefined);
  return kind === 'ready' || (kind === 'starting' && run);
}

/**
 * A kubelet marks a pod as ready when all its containers are ready. All containers ready but the pod not ready means that the node
 * controller marked the pod, because its node stopped reporting.
 */
function isNodeLost(pod: Pod): boolean {
  const containers = pod.status?.containerStatuses ?? [];
  return containers.length > 0 && containers.every(({ ready }) => ready === true);
}

function failureOf(pod: Pod): PodState | undefined {
  for (const container of pod.status?.containerStatuses ?? []) {
    const waiting = container.state?.waiting;
    if (waiting?.reason !== undefined && IMAGE_REASONS.has(waiting.reason)) {
      return {
        kind: 'imagePullFailed',
        message: `container "${container.name}": ${tail(waiting.message ?? waiting.reason)}`,
      };
    }
    if (isCrashing(container)) return { kind: 'crashLooping', message: crashOf(container) };
  }
  return undefined;
}

function isCrashing({ state, restartCount = 0, ready }: ContainerStatus): boolean {
  if (state?.waiting?.reason === 'CrashLoopBackOff') return true;
  if (state?.waiting?.reason === 'CreateContainerConfigError' || state?.waiting?.reason === 'RunContainerError')
    return true;
  return restartCount >= MIN_CRASH_RESTARTS && ready !== true;
}

function crashOf({ name, restartCount = 0, state, lastState }: ContainerStatus): string {
  const container = `container "${tail(name)}"`;
  const ended = lastState?.terminated ?? state?.terminated;
  if (ended === undefined) return `${container} cannot start: ${tail(textOf(state?.waiting))}`;
  const last = tail(textOf(ended));
  return `${container} exited ${ended.exitCode} ${times(restartCount)}${last === '' ? '' : `, last: ${last}`}`;
}

function textOf(source: { message?: string; reason?: string } | undefined): string {
  return source?.message ?? source?.reason ?? '';
}

/** The end of a message, in one line, because the cause is usually last. */
function tail(text: string): string {
  const trimmed = text.trim();
  return printable(trimmed.length > MAX_MESSAGE_LENGTH ? `…${trimmed.slice(-MAX_MESSAGE_LENGTH)}` : trimmed);
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function endMessage(pod: Pod): string {
  const { phase = '', reason, message } = pod.status ?? {};
  const crashed = pod.status?.containerStatuses?.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  if (reason === undefined && crashed !== undefined) return crashOf({ ...crashed, restartCount: 1 });
  const detail = message === undefined ? '' : `: ${tail(message)}`;
  return `${tail(reason ?? phase)}${detail}`;
}

function conditionOf(pod: Pod, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

/** Everything that a reconcile reads from a pod: two pods with the same fingerprint give the same plan. */
export function podFingerprint(pod: Pod): string {
  return JSON.stringify([pod.metadata.uid, pod.metadata.labels, isRunning(pod), podState(pod)]);
}
