import { printable } from '../../lib/printable.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { type Pod, TYPES } from '../kube/types.ts';
import { podState } from './pod-state.ts';

/** Most pods start within this time, so their Events need not be read. */
const START_TIMEOUT_MS = 15_000;
const MAX_MESSAGE_LENGTH = 600;

/** In a protected namespace the admission policies let no user write Events of these components. */
const TRUSTED_COMPONENTS: ReadonlySet<string> = new Set([
  'kubelet',
  'default-scheduler',
  'attachdetach-controller',
  'node-controller',
  'taint-eviction-controller',
]);

interface PodEvent extends KubeObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly eventTime?: string | null;
  readonly lastTimestamp?: string | null;
  readonly source?: { readonly component?: string };
  readonly reportingComponent?: string;
  readonly series?: { readonly lastObservedTime?: string } | null;
}

/** Should the pod be running by now? */
export function isLate(pod: Pod, now: Date): boolean {
  const createdAt = Date.parse(pod.metadata.creationTimestamp ?? '');
  return now.getTime() - createdAt >= START_TIMEOUT_MS && podState(pod).kind === 'starting';
}

/**
 * The latest warning Event of a late pod, such as a missing volume, a failed network setup or an unreachable node. The pod status does not
 * contain these problems. Unhealthy events are skipped, because a failed readiness probe is not a cause, and so are those of other
 * components, because any writer of the namespace can create them. Reads the Events of this pod from
 * the API server; undefined when there is no warning.
 */
export async function latestWarning(
  client: KubeClient,
  { metadata }: Pod,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = '', uid = '' } = metadata;
  const fieldSelector = `involvedObject.uid=${uid},type=Warning,reason!=Unhealthy`;
  const events = await client.list<PodEvent>(TYPES.events, { namespace, fieldSelector }, signal);
  const trusted = events.filter((event) => TRUSTED_COMPONENTS.has(componentOf(event)));
  const [latest] = trusted.toSorted((one, other) => timeOf(other) - timeOf(one));
  if (latest === undefined) return undefined;
  return printable(`${latest.reason ?? ''}: ${(latest.message ?? '').trim()}`, MAX_MESSAGE_LENGTH);
}

/** An Event of the older API names its component in `source`, one of the newer API in `reportingComponent`. */
function componentOf({ source, reportingComponent = '' }: PodEvent): string {
  return reportingComponent === '' ? (source?.component ?? '') : reportingComponent;
}

function timeOf({ series, lastTimestamp, eventTime }: PodEvent): number {
  return Date.parse(series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? '') || 0;
}
