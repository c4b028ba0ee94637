import type { AgentStatus } from '../../api/v1alpha1/agent.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Outcome } from '../../kube/outcome.ts';
import type { Logger } from '../../telemetry/log.ts';
import { partsOf } from '../cache.ts';
import { transitions } from '../conditions.ts';
import { type StoredAgent, TYPES } from '../kube-types.ts';
import type { Namespaces } from '../namespace/prepare.ts';
import { OwnStatuses } from '../own-statuses.ts';
import { OwnWrites } from '../own-writes.ts';
import { type Applied, apply, refusalBy } from './apply.ts';
import { giveBack, heldBefore } from './hand-over.ts';
import { type ObserveDeps, observe } from './observe.ts';
import { LIVE_EVERY } from './news.ts';
import type { Observed } from './observed.ts';
import { type Plan, plan } from './plan.ts';
import { statusDiffers, statusPatch, summarize } from './summarize.ts';

export interface AgentDeps extends ObserveDeps {
  readonly namespaces: Namespaces;
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
  readonly statuses = new OwnStatuses();
  readonly #written = new OwnWrites<StoredAgent>();
  readonly #numbersWrittenAt = new Map<string, number>();
  readonly #rejections = new Map<string, number>();
  readonly #consecutiveErrors = new Map<string, number>();

  constructor(deps: AgentDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, { log, signal }: { log: Logger; signal: AbortSignal }): Promise<Outcome> {
    const { namespace, name } = partsOf(key);
    const cached = this.#deps.agents.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#written.forget(key);
      return { kind: 'done' };
    }
    const agent = this.#written.latest(key, cached);
    const observed = await observe(this.#deps, agent, log, signal);
    const planned = plan(observed);
    const applied = await this.#apply(observed, planned, signal);
    const held = await heldBefore(this.#deps.bus, agent, applied, log, signal);
    await this.#write(
      key,
      cached.metadata.resourceVersion,
      observed,
      summarize(observed, planned, applied),
      applied,
      signal,
    );
    // The write succeeded, so no other pod was bound meanwhile, and the message does not belong to the new pod.
    await giveBack(this.#deps.bus, agent.metadata.uid, held, log, signal);
    return this.#outcome(agent.metadata.uid, planned, applied);
  }

  /** Drops the in-memory state of a deleted agent. */
  forget(uid: string): void {
    this.#numbersWrittenAt.delete(uid);
    this.#rejections.delete(uid);
    this.#consecutiveErrors.delete(uid);
    this.statuses.forget(uid);
    this.#deps.validation.forget(uid);
    this.#deps.crashBackoff.forget(uid);
  }

  async #apply(observed: Observed, planned: Plan, signal: AbortSignal): Promise<Applied> {
    const { agent, warm } = observed;
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
      const rejection = createsPod ? refusalBy(error, errors) : undefined;
      if (rejection === undefined) throw error;
      return rejection;
    } finally {
      if (warm !== undefined && !isWarmPodBound) this.#deps.pool.release(warm);
    }
  }

  async #write(
    key: string,
    cachedVersion: string,
    { agent, now }: Observed,
    status: AgentStatus,
    applied: Applied,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace, name, uid, resourceVersion } = agent.metadata;
    const includeNumbers = now.getTime() - (this.#numbersWrittenAt.get(uid) ?? 0) >= LIVE_EVERY;
    const isDifferent = statusDiffers(agent.status, status, includeNumbers);
    this.statuses.expect(uid, isDifferent ? status : agent.status);
    if (!isDifferent) return;
    const patch = { metadata: { resourceVersion }, status: statusPatch(agent.status, status) };
    const options = { subresource: 'status' } as const;
    const stored = await this.#deps.client.patch<StoredAgent>(
      TYPES.agents,
      { namespace, name },
      patch,
      signal,
      options,
    );
    this.#written.wrote(key, cachedVersion, stored);
    this.#numbersWrittenAt.set(uid, now.getTime());
    // No Event for a claim: the pod shows the claim, and one Event per claim would cost more than the warm pool saves.
    if (applied.kind === 'bound' && applied.claimed === true) return;
    const subject = { apiVersion: agent.apiVersion, kind: agent.kind, metadata: { name, namespace, uid } };
    for (const transition of transitions(agent.status?.conditions, status.conditions ?? [], 'Ready')) {
      this.#deps.events.record(subject, transition);
    }
  }

  #outcome(uid: string, planned: Plan, applied: Applied): Outcome {
    if (applied.kind === 'waiting') return { kind: 'again', after: WAITING_RETRY_MS };
    if (applied.kind === 'refused') {
      const count = this.#rejections.get(uid) ?? 0;
      this.#rejections.set(uid, count + 1);
      return { kind: 'again', after: Math.min(MIN_RETRY_MS * 2 ** count, MAX_RETRY_MS) };
    }
    if (planned.step.kind !== 'none') this.#rejections.delete(uid);
    return planned.requeueAfterMs === undefined ? { kind: 'done' } : { kind: 'again', after: planned.requeueAfterMs };
  }
}
