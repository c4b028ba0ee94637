import { printable } from '../../lib/escape.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { KubeObject } from '../../kube/store.ts';
import { type Pod, TYPES } from '../kube-types.ts';
import { podState } from './pod-state.ts';

/** Most pods start sooner, and nobody needs to be asked about them. */
const PATIENCE = 15_000;
const WORDS = 600;

interface PodEvent extends KubeObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly eventTime?: string | null;
  readonly lastTimestamp?: string | null;
  readonly series?: { readonly lastObservedTime?: string } | null;
}

/** It should run by now. */
export function isLate(pod: Pod, now: Date): boolean {
  const made = Date.parse(pod.metadata.creationTimestamp ?? '');
  return now.getTime() - made >= PATIENCE && podState(pod).kind === 'starting';
}

/**
 * What node and kubelet said last of a pod that is late: a volume that is not there, a network that is not made, a node that is away. Its
 * status has no place for that. That it is not ready yet explains nothing. Asked of the API server for this one pod; undefined when nobody complained.
 */
export async function delayOf(client: KubeClient, { metadata }: Pod, signal: AbortSignal): Promise<string | undefined> {
  const { namespace = '', uid = '' } = metadata;
  const fieldSelector = `involvedObject.uid=${uid},type=Warning,reason!=Unhealthy`;
  const events = await client.list<PodEvent>(TYPES.events, { namespace, fieldSelector }, signal);
  const [latest] = events.toSorted((one, other) => timeOf(other) - timeOf(one));
  if (latest === undefined) return undefined;
  return printable(`${latest.reason ?? ''}: ${(latest.message ?? '').trim()}`, WORDS);
}

function timeOf({ series, lastTimestamp, eventTime }: PodEvent): number {
  return Date.parse(series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? '') || 0;
}
