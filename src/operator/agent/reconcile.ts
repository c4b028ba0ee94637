import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { Logger } from '../../telemetry/log.ts';
import { parseKey } from '../kube/cache.ts';
import { type ConditionEvent, conditionEvents } from '../conditions.ts';
import { type StoredAgent, TYPES } from '../kube/types.ts';
import type { NamespaceObjects } from '../namespace/prepare.ts';
import { StatusTracker } from '../kube/status-tracker.ts';
import { WriteCache } from '../kube/write-cache.ts';
import { type ApplyResult, apply, rejectionOf } from './apply.ts';
import { DelayedEvents } from './delayed-events.ts';
import { redeliver, readInFlight } from './message-handover.ts';
import { type ObserveDeps, observe } from './observe.ts';
import { NUMBERS_INTERVAL_MS } from './status-throttle.ts';
import type { ObservedAgent } from './observed.ts';
import { type PodPlan, plan } from './plan.ts';
import { statusDiffers, statusPatch, summarize } from './summarize.ts';

export interface AgentDeps extends ObserveDeps {
  readonly namespaces: NamespaceObjects;
  readonly events: EventRecorder;
}

/** Retry interval while the pod is waiting, e.g. for the gateway address and the CA. */
const WAITING_RETRY_MS = 1_000;
const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 300_000;

/**
 * Reconciles one agent in four steps: observe, plan, apply, summarize. The only writer of Agent status.
 *
 * The order of a pod replacement matters:
 *
 *     apply                      → pod B exists; the status still binds pod A; the gateway rejects B
 *     read the message in flight → it can only belong to A
 *     write the status           → binds B; fails if another pod was bound meanwhile; the gateway now rejects A
 *     redeliver the message      → NATS gives the message to B at once, instead of after the ack wait
 */
export class AgentReconciler {
  readonly #deps: AgentDeps;
  readonly statuses = new StatusTracker();
  readonly #written = new WriteCache<StoredAgent>();
  readonly #numbersWrittenAt = new Map<string, number>();
  readonly #rejections = new Map<string, number>();
  readonly #consecutiveErrors = new Map<string, number>();
  readonly #delayedEvents: DelayedEvents;

  constructor(deps: AgentDeps) {
    this.#deps = deps;
    this.#delayedEvents = new DelayedEvents(deps.clock);
  }

  async reconcile(key: string, { log, signal }: { log: Logger; signal: AbortSignal }): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.agents.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#written.forget(key);
      return { kind: 'done' };
    }
    const agent = this.#written.latest(key, cached);
    const observed = await observe(this.#deps, agent, log, signal);
    const planned = plan(observed);
    const applied = await this.#apply(observed, planned, signal);
    const held = await readInFlight(this.#deps.agentActivity, agent, applied, log, signal);
    await this.#write(
      key,
      cached.metadata.resourceVersion,
      observed,
      summarize(observed, planned, applied),
      applied,
      signal,
    );
    // The write succeeded, so no other pod was bound meanwhile, and the message does not belong to the new pod.
    await redeliver(this.#deps.agentActivity, agent.metadata.uid, held, log, signal);
    return this.#outcome(agent.metadata.uid, planned, applied);
  }

  /** Drops the in-memory state of a deleted agent. */
  forget(uid: string): void {
    this.#numbersWrittenAt.delete(uid);
    this.#rejections.delete(uid);
    this.#consecutiveErrors.delete(uid);
    this.#delayedEvents.forget(uid);
    this.statuses.forget(uid);
    this.#deps.validation.forget(uid);
    this.#deps.crashBackoff.forget(uid);
  }

  async #apply(observed: ObservedAgent, planned: PodPlan, signal: AbortSignal): Promise<ApplyResult> {
    const { agent, warmPod: warm } = observed;
    const createsPod = planned.step.kind === 'create' || planned.step.kind === 'claim';
    let isWarmPodBound = false;
    try {
      if (createsPod && !(await this.#deps.namespaces.prepare(agent.metadata.namespace, signal))) {
        return {
          kind: 'waiting',
          message:
            'waiting for the gateway: its Service has no address, or its certificate does not exist yet; check the Services of the release and the operator log',
        };
      }
      const applied = await apply(this.#deps.client, agent, planned, signal);
      isWarmPodBound = applied.kind === 'bound' && applied.pod.metadata.uid === warm?.metadata.uid;
      this.#consecutiveErrors.delete(agent.metadata.uid);
      return applied;
    } catch (error) {
      const errors = (this.#consecutiveErrors.get(agent.metadata.uid) ?? 0) + 1;
      this.#consecutiveErrors.set(agent.metadata.uid, errors);
      // Only a failed create or claim is reported: a kept pod stays bound when another call fails.
      const rejection = createsPod ? rejectionOf(error, errors) : undefined;
      if (rejection === undefined) throw error;
      return rejection;
    } finally {
      if (warm !== undefined && !isWarmPodBound) this.#deps.pool.release(warm);
    }
  }

  async #write(
    key: string,
    cachedVersion: string,
    { agent, now }: ObservedAgent,
    status: AgentStatus,
    applied: ApplyResult,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace, name, uid, resourceVersion } = agent.metadata;
    const includeNumbers = now.getTime() - (this.#numbersWrittenAt.get(uid) ?? 0) >= NUMBERS_INTERVAL_MS;
    const isDifferent = statusDiffers(agent.status, status, includeNumbers);
    this.statuses.expect(uid, isDifferent ? status : agent.status);
    if (!isDifferent) {
      this.#recordEvents(agent, status, []);
      return;
    }
    const patch = { metadata: { resourceVersion }, status: statusPatch(agent.status, status) };
    const options = { subresource: 'status' } as const;
    const stored = await this.#deps.client.patch<StoredAgent>(
      TYPES.agents,
      { namespace, name },
      patch,
      signal,
      options,
    );
    this.#written.record(key, cachedVersion, stored);
    this.#numbersWrittenAt.set(uid, now.getTime());
    // No Event for a claim: the pod shows the claim, and one Event per claim would cost more than the warm pool saves.
    const isClaim = applied.kind === 'bound' && applied.claimed === true;
    const transitions = conditionEvents(agent.status?.conditions, status.conditions ?? [], 'Ready');
    this.#recordEvents(agent, status, isClaim ? [] : transitions);
  }

  #recordEvents(agent: StoredAgent, { conditions = [] }: AgentStatus, transitions: readonly ConditionEvent[]): void {
    const { name, namespace, uid } = agent.metadata;
    const subject = { apiVersion: agent.apiVersion, kind: agent.kind, metadata: { name, namespace, uid } };
    for (const event of this.#delayedEvents.due(uid, conditions, transitions)) this.#deps.events.record(subject, event);
  }

  #outcome(uid: string, planned: PodPlan, applied: ApplyResult): ReconcileResult {
    if (applied.kind === 'waiting') return { kind: 'requeueAfter', afterMs: WAITING_RETRY_MS };
    if (applied.kind === 'refused') {
      const count = this.#rejections.get(uid) ?? 0;
      this.#rejections.set(uid, count + 1);
      return { kind: 'requeueAfter', afterMs: Math.min(MIN_RETRY_MS * 2 ** count, MAX_RETRY_MS) };
    }
    if (planned.step.kind !== 'none') this.#rejections.delete(uid);
    const delays = [planned.requeueAfterMs, this.#delayedEvents.remainingMs(uid)].filter((ms) => ms !== undefined);
    return delays.length === 0 ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: Math.min(...delays) };
  }
}
