import { ANNOTATIONS } from '../../api/cluster.ts';
import { parseDuration } from '../../api/quantities.ts';
import { type ConditionUpdate, reasonOf } from '../conditions.ts';
import type { Pod } from '../kube/types.ts';
import { notReady, rejection, suspension } from './admission.ts';
import type { ObservedAgent } from './observed.ts';
import { podName } from '../pods/pod-name.ts';
import { podState } from '../pods/pod-state.ts';
import type { PodTemplate } from '../pods/pod-template.ts';

/** The next step for the agent's pod. */
type PodStep =
  /** Keep the bound pod. */
  | { readonly kind: 'keep'; readonly pod: Pod }
  /** Bind a pod that already belongs to this agent, when it still matches the template. */
  | { readonly kind: 'bind'; readonly pod: Pod; readonly template: PodTemplate }
  | { readonly kind: 'claim'; readonly pod: Pod; readonly template: PodTemplate }
  | { readonly kind: 'create'; readonly name: string; readonly template: PodTemplate }
  /** No pod now: intentionally, because of an error, or until a time. `ready` states why. */
  | { readonly kind: 'none'; readonly ready: ConditionUpdate<'Ready'> };

export interface PodPlan {
  /** Pods to delete. */
  readonly remove: readonly Pod[];
  readonly step: PodStep;
  /** Why the agent is suspended. */
  readonly suspended: string | undefined;
  /** Milliseconds after which the plan may change without a change of any object. */
  readonly requeueAfterMs: number | undefined;
}

/** Minimum duration of a NATS outage before agent statuses report it. Most outages are shorter. */
export const OUTAGE_GRACE_MS = 60_000;
/** Retry interval when the queue of an idle agent cannot be read. */
const RETRY_MS = 30_000;

/** Computes the plan from the observed state. Pure: the same input gives the same plan. */
export function plan(observed: ObservedAgent): PodPlan {
  const suspended = suspension(observed);
  const without = (ready: ConditionUpdate<'Ready'>, requeueAfterMs?: number): PodPlan => ({
    remove: running(observed.pods),
    step: { kind: 'none', ready },
    suspended,
    requeueAfterMs,
  });
  const refused = rejection(observed);
  if (refused !== undefined) return without(refused);
  if (suspended !== undefined) return without(readyIdle('Suspended', suspended));
  const idle = idleDecision(observed);
  if (idle !== undefined) {
    const stays = without(idle.ready, idle.requeueAfterMs);
    // A pod that the status does not name was created for a message, and may work on it, unless the queue is known to be empty.
    return observed.pending === undefined ? { ...stays, remove: [] } : stays;
  }
  return { ...withPod(observed), suspended };
}

/** The plan for an agent that needs a pod: an existing one, a warm one or a new one. */
function withPod(observed: ObservedAgent): Omit<PodPlan, 'suspended'> {
  const { agent, bound, pods, template, protection, warmPod: warm } = observed;
  if (template === undefined) throw new TypeError('an accepted agent has a template');
  const others = (kept: Pod | undefined) => running(pods).filter((pod) => pod.metadata.uid !== kept?.metadata.uid);
  if (bound !== undefined && isUsable(bound, template) && !observed.hasBindingConflict) {
    return { remove: others(bound), step: { kind: 'keep', pod: bound }, requeueAfterMs: msUntilIdle(observed, bound) };
  }
  const own = unconfirmed(observed, template);
  if (own !== undefined)
    return { remove: others(own), step: { kind: 'bind', pod: own, template }, requeueAfterMs: undefined };
  // The name depends on the bound pod, even if that pod no longer exists.
  const name = podName({ name: agent.metadata.name, uid: agent.metadata.uid }, observed.boundUid);
  const remove = others(undefined);
  const create: PodStep = { kind: 'create', name, template };
  const wait = protection.kind === 'notEnforced' ? policyMissing(protection.message) : backingOff(observed);
  if (wait !== undefined) return { remove, ...wait };
  if (warm === undefined) return { remove, step: create, requeueAfterMs: undefined };
  return { remove, step: { kind: 'claim', pod: warm, template }, requeueAfterMs: undefined };
}

function isUsable(pod: Pod, template: PodTemplate): boolean {
  return isLiving(pod) && pod.metadata.annotations?.[ANNOTATIONS.template] === template.digest;
}

function isLiving(pod: Pod): boolean {
  const { kind } = podState(pod);
  return kind !== 'terminating' && kind !== 'ended';
}

/** A created or claimed pod of this agent, when the operator stopped before it wrote the status. Of several the first by name. */
function unconfirmed({ pods, bound }: ObservedAgent, template: PodTemplate): Pod | undefined {
  const usable = pods.filter((pod) => pod.metadata.uid !== bound?.metadata.uid && isUsable(pod, template));
  return usable.toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))[0];
}

function policyMissing(message: string): { step: PodStep; requeueAfterMs: undefined } {
  return { step: { kind: 'none', ready: notReady('AdmissionPolicyMissing', message) }, requeueAfterMs: undefined };
}

function running(pods: readonly Pod[]): Pod[] {
  return pods.filter((pod) => pod.metadata.deletionTimestamp === undefined);
}

function backingOff({ failures, now, agent }: ObservedAgent): { step: PodStep; requeueAfterMs: number } | undefined {
  const wait = failures.retryAt === undefined ? 0 : failures.retryAt.getTime() - now.getTime();
  if (wait <= 0) return undefined;
  const next = `the next pod is created at ${failures.retryAt?.toISOString().slice(11, 19)} UTC`;
  const message = `${failures.message}; ${next}; see kubectl get events --namespace ${agent.metadata.namespace}`;
  return { step: { kind: 'none', ready: notReady('PodCrashLooping', message) }, requeueAfterMs: wait };
}

/** Decides whether the agent is idle: it stays scaled to zero, or is scaled down now. */
function idleDecision(
  observed: ObservedAgent,
): { ready: ConditionUpdate<'Ready'>; requeueAfterMs?: number } | undefined {
  const { agent, bound, pending, now } = observed;
  const after = idleAfter(observed);
  if (after === undefined) return undefined;
  const isScaledDown = reasonOf(agent.status?.conditions, 'Ready') === 'Idle' && agent.status?.pod === undefined;
  const message = `no message for ${agent.spec.idle?.scaleToZeroAfter}; the next one starts a pod with an empty workspace`;
  if (isScaledDown && pending === undefined) return { ready: readyIdle('Idle', message), requeueAfterMs: RETRY_MS };
  if (isScaledDown) return pending === 0 ? { ready: readyIdle('Idle', message) } : undefined;
  const active = activeAt(observed, bound);
  if (bound === undefined || active === undefined || pending !== 0) return undefined;
  return now.getTime() - active >= after ? { ready: readyIdle('Idle', message) } : undefined;
}

function idleAfter({ agent }: ObservedAgent): number | undefined {
  const text = agent.spec.idle?.scaleToZeroAfter;
  return text === undefined ? undefined : parseDuration(text);
}

/** Time of the last activity; the creation of the pod counts as activity. Undefined when it is unknown: the agent is then not idle. */
function activeAt({ lastActivity }: ObservedAgent, pod: Pod | undefined): number | undefined {
  if (lastActivity === undefined) return undefined;
  return Math.max(lastActivity.getTime(), Date.parse(pod?.metadata.creationTimestamp ?? '') || 0);
}

/** Milliseconds until the agent may become idle. */
function msUntilIdle(observed: ObservedAgent, pod: Pod): number | undefined {
  const after = idleAfter(observed);
  if (after === undefined) return undefined;
  const active = activeAt(observed, pod) ?? observed.now.getTime();
  return Math.max(active + after - observed.now.getTime(), 1_000);
}

/** Does the NATS outage last long enough to be reported in the status? */
function shouldReport(natsUnavailableSince: Date | undefined, now: Date): natsUnavailableSince is Date {
  return natsUnavailableSince !== undefined && now.getTime() - natsUnavailableSince.getTime() >= OUTAGE_GRACE_MS;
}

/** The Ready condition during a NATS outage. */
export function natsUnavailable({
  natsUnavailableSince,
  now,
  pending,
}: ObservedAgent): ConditionUpdate<'Ready'> | undefined {
  if (!shouldReport(natsUnavailableSince, now)) return undefined;
  const waiting = pending === undefined ? 'messages wait' : `${pending} messages wait`;
  const since = `${natsUnavailableSince.toISOString().slice(0, 16)}Z`;
  return notReady(
    'BusUnavailable',
    `NATS unreachable since ${since}; ${waiting}; see the NATS pods and the operator log`,
  );
}

function readyIdle(reason: 'Suspended' | 'Idle', message: string): ConditionUpdate<'Ready'> {
  return { type: 'Ready', status: 'True', reason, message };
}
