import { printable } from '../../lib/escape.ts';
import type { ContainerStatus, Pod } from '../kube-types.ts';

/** What a pod is about, read from its status. Words in it come from kubelet, scheduler and the pod itself: made safe and short. */
export type PodState =
  | { readonly kind: 'ready' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'unschedulable'; readonly message: string }
  | { readonly kind: 'imagePullFailed'; readonly message: string }
  | { readonly kind: 'crashLooping'; readonly message: string }
  /** Nobody knows whether it runs: what its containers say is from before. */
  | { readonly kind: 'nodeNotReady'; readonly node: string }
  /** It will not run again: evicted, its node is gone, or it ended. */
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

/** Restarts after which a pod that is not ready is said to crash, though it is not waiting at this moment. */
const CRASHES = 3;
const WORDS = 400;

export function podState(pod: Pod): PodState {
  if (pod.metadata.deletionTimestamp !== undefined) return { kind: 'terminating' };
  const { phase } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') return { kind: 'ended', message: endOf(pod) };
  const troubled = troubleOf(pod);
  if (troubled !== undefined) return troubled;
  if (conditionOf(pod, 'Ready')?.status === 'True') return { kind: 'ready' };
  return stateOfUnready(pod);
}

function stateOfUnready(pod: Pod): PodState {
  if (isCutOff(pod)) return { kind: 'nodeNotReady', node: words(pod.spec?.nodeName ?? 'unknown') };
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    return { kind: 'unschedulable', message: words(scheduled.message ?? 'no node fits') };
  }
  return { kind: 'starting' };
}

/** Both containers run, whether or not they are ready: a warm pod that may wait for nothing but its assignment. */
export function isUp(pod: Pod): boolean {
  const { kind } = podState(pod);
  const containers = pod.status?.containerStatuses ?? [];
  const run = containers.length > 0 && containers.every(({ state }) => state?.running !== undefined);
  return kind === 'ready' || (kind === 'starting' && run);
}

/** A kubelet calls a pod ready when its containers are. That they are and it is not is the control plane's word on a silent node. */
function isCutOff(pod: Pod): boolean {
  const containers = pod.status?.containerStatuses ?? [];
  return containers.length > 0 && containers.every(({ ready }) => ready === true);
}

function troubleOf(pod: Pod): PodState | undefined {
  for (const container of pod.status?.containerStatuses ?? []) {
    const waiting = container.state?.waiting;
    if (waiting?.reason !== undefined && IMAGE_REASONS.has(waiting.reason)) {
      return {
        kind: 'imagePullFailed',
        message: `container "${container.name}": ${words(waiting.message ?? waiting.reason)}`,
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
  return restartCount >= CRASHES && ready !== true;
}

function crashOf({ name, restartCount = 0, state, lastState }: ContainerStatus): string {
  const container = `container "${words(name)}"`;
  const ended = lastState?.terminated ?? state?.terminated;
  if (ended === undefined) return `${container} cannot start: ${words(wordsOf(state?.waiting))}`;
  const last = words(wordsOf(ended));
  return `${container} exited ${ended.exitCode} ${times(restartCount)}${last === '' ? '' : `, last: ${last}`}`;
}

function wordsOf(said: { message?: string; reason?: string } | undefined): string {
  return said?.message ?? said?.reason ?? '';
}

/** The end of what a container said, in one line: the cause stands last. */
function words(text: string): string {
  const trimmed = text.trim();
  return printable(trimmed.length > WORDS ? `…${trimmed.slice(-WORDS)}` : trimmed);
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function endOf(pod: Pod): string {
  const { phase = '', reason, message } = pod.status ?? {};
  const crashed = pod.status?.containerStatuses?.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  if (reason === undefined && crashed !== undefined) return crashOf({ ...crashed, restartCount: 1 });
  const detail = message === undefined ? '' : `: ${words(message)}`;
  return `${words(reason ?? phase)}${detail}`;
}

function conditionOf(pod: Pod, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}

/** Everything a reconcile looks at: two pods with one fingerprint make the same plan. */
export function podFingerprint(pod: Pod): string {
  return JSON.stringify([pod.metadata.uid, pod.metadata.labels, isUp(pod), podState(pod)]);
}
