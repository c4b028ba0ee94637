import { ANNOTATIONS } from '../../api/cluster.ts';
import { parseDuration } from '../../api/quantities.ts';
import { type Finding, reasonOf } from '../conditions.ts';
import type { Pod } from '../kube-types.ts';
import { refusal, suspension } from './acceptance.ts';
import type { Observed } from './observed.ts';
import { isWarmName, podName } from './pod-name.ts';
import { podState } from './pod-state.ts';
import type { PodTemplate } from './pod-template.ts';

/** What shall become of the agent's pod. */
type PodStep =
  /** The one it is bound to stays. */
  | { readonly kind: 'keep'; readonly pod: Pod }
  /** One of ours that was made before and is not bound yet. */
  | { readonly kind: 'bind'; readonly pod: Pod }
  | { readonly kind: 'claim'; readonly pod: Pod; readonly template: PodTemplate }
  | { readonly kind: 'create'; readonly name: string; readonly template: PodTemplate }
  /** No pod now: on purpose, for a fault, or until a time. `ready` says why. */
  | { readonly kind: 'none'; readonly ready: Finding<'Ready'> };

export interface Plan {
  /** Pods that must go, by name and uid. */
  readonly remove: readonly Pod[];
  readonly step: PodStep;
  /** Why the agent may not work, when it is told to stop. */
  readonly suspended: string | undefined;
  /** Milliseconds after which the same world may want another plan. */
  readonly again: number | undefined;
}

/** How long the bus may be away before every agent says so: most outages are shorter. */
export const BUS_PATIENCE = 60_000;
/** Until a bus that did not say whether messages wait for a sleeper is asked again. */
const ASK_AGAIN = 30_000;

/** From what is to what shall be. Pure: the same observation makes the same plan. */
export function plan(observed: Observed): Plan {
  const suspended = suspension(observed);
  const without = (ready: Finding<'Ready'>, again?: number): Plan => ({
    remove: running(observed.pods),
    step: { kind: 'none', ready },
    suspended,
    again,
  });
  const refused = refusal(observed);
  if (refused !== undefined) return without(refused);
  if (suspended !== undefined) return without(idle('Suspended', suspended));
  const rest = resting(observed);
  if (rest !== undefined) return without(rest.ready, rest.again);
  return { ...withPod(observed), suspended };
}

/** Of what exists, or what is to be made. */
function withPod(observed: Observed): Omit<Plan, 'suspended'> {
  const { agent, bound, pods, template, guard, warm } = observed;
  if (template === undefined) throw new TypeError('an accepted agent has a template');
  const others = (kept: Pod | undefined) => running(pods).filter((pod) => pod.metadata.uid !== kept?.metadata.uid);
  if (bound !== undefined && isUsable(bound, template) && !observed.boundTwice) {
    return { remove: others(bound), step: { kind: 'keep', pod: bound }, again: untilIdle(observed, bound) };
  }
  const given = pods.find((pod) => isGiven(pod, observed) && isUsable(pod, template));
  if (given !== undefined) return { remove: others(given), step: { kind: 'bind', pod: given }, again: undefined };
  // What the next name follows from: the pod that is bound so far, whether it still exists or not.
  const name = podName({ name: agent.metadata.name, uid: agent.metadata.uid }, agent.status?.pod?.uid);
  const made = pods.find((pod) => pod.metadata.name === name && isUsable(pod, template));
  const remove = others(made);
  const create: PodStep = { kind: 'create', name, template };
  // It is there already: creating it finds that out and looks at it closely.
  if (made !== undefined) return { remove, step: create, again: undefined };
  const wait = guard.kind === 'missing' ? guardMissing(guard.message) : backingOff(observed);
  if (wait !== undefined) return { remove, ...wait };
  if (warm === undefined) return { remove, step: create, again: undefined };
  return { remove, step: { kind: 'claim', pod: warm, template }, again: undefined };
}

function isUsable(pod: Pod, template: PodTemplate): boolean {
  const { kind } = podState(pod);
  return (
    kind !== 'terminating' && kind !== 'ended' && pod.metadata.annotations?.[ANNOTATIONS.template] === template.digest
  );
}

/** A warm pod that was made this agent's, when the operator ended before it could write that down. */
function isGiven(pod: Pod, { agent, bound }: Observed): boolean {
  if (pod.metadata.uid === bound?.metadata.uid) return false;
  return isWarmName(pod.metadata.name) && !pod.metadata.name.startsWith(`${agent.metadata.name}-`);
}

function guardMissing(message: string): { step: PodStep; again: undefined } {
  return { step: { kind: 'none', ready: no('GuardMissing', message) }, again: undefined };
}

function running(pods: readonly Pod[]): Pod[] {
  return pods.filter((pod) => pod.metadata.deletionTimestamp === undefined);
}

function backingOff({ failures, now, agent }: Observed): { step: PodStep; again: number } | undefined {
  const wait = failures.retryAt === undefined ? 0 : failures.retryAt.getTime() - now.getTime();
  if (wait <= 0) return undefined;
  const next = `the next pod is made at ${failures.retryAt?.toISOString().slice(11, 19)} UTC`;
  const message = `${failures.message}; ${next}; see kubectl get events --namespace ${agent.metadata.namespace}`;
  return { step: { kind: 'none', ready: no('PodCrashLooping', message) }, again: wait };
}

/** Is it asleep, or shall it go to sleep? */
function resting(observed: Observed): { ready: Finding<'Ready'>; again?: number } | undefined {
  const { agent, bound, pending, now } = observed;
  const after = idleAfter(observed);
  if (after === undefined) return undefined;
  const asleep = reasonOf(agent.status?.conditions, 'Ready') === 'Idle' && agent.status?.pod === undefined;
  const message = `no message for ${agent.spec.idle?.scaleToZeroAfter}; the next one starts a pod with an empty workspace`;
  if (asleep && pending === undefined) return { ready: idle('Idle', message), again: ASK_AGAIN };
  if (asleep) return pending === 0 ? { ready: idle('Idle', message) } : undefined;
  const active = activeAt(observed, bound);
  if (bound === undefined || active === undefined || pending !== 0) return undefined;
  return now.getTime() - active >= after ? { ready: idle('Idle', message) } : undefined;
}

function idleAfter({ agent }: Observed): number | undefined {
  const text = agent.spec.idle?.scaleToZeroAfter;
  return text === undefined ? undefined : parseDuration(text);
}

/** Undefined when the bus does not say: then nothing is known to be idle. A pod just made counts as activity. */
function activeAt({ lastActivity }: Observed, pod: Pod | undefined): number | undefined {
  if (lastActivity === undefined) return undefined;
  return Math.max(lastActivity.getTime(), Date.parse(pod?.metadata.creationTimestamp ?? '') || 0);
}

/** When to look again whether nothing was asked for long enough. */
function untilIdle(observed: Observed, pod: Pod): number | undefined {
  const after = idleAfter(observed);
  if (after === undefined) return undefined;
  const active = activeAt(observed, pod) ?? observed.now.getTime();
  return Math.max(active + after - observed.now.getTime(), 1_000);
}

/** Is the bus away for long enough to be worth a condition? */
function isWorthTelling(busUnavailableSince: Date | undefined, now: Date): busUnavailableSince is Date {
  return busUnavailableSince !== undefined && now.getTime() - busUnavailableSince.getTime() >= BUS_PATIENCE;
}

/** What to say of a bus that is away. */
export function busAway({ busUnavailableSince, now, pending }: Observed): Finding<'Ready'> | undefined {
  if (!isWorthTelling(busUnavailableSince, now)) return undefined;
  const waiting = pending === undefined ? 'messages wait' : `${pending} messages wait`;
  const since = `${busUnavailableSince.toISOString().slice(0, 16)}Z`;
  return no(
    'BusUnavailable',
    `NATS unreachable since ${since}; ${waiting}; see the pods of the bus and the operator's log`,
  );
}

function no(reason: string, message: string): Finding<'Ready'> {
  return { type: 'Ready', status: 'False', reason, message };
}

function idle(reason: 'Suspended' | 'Idle', message: string): Finding<'Ready'> {
  return { type: 'Ready', status: 'True', reason, message };
}
