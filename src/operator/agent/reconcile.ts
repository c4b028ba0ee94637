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

/** Until the gateway's address and the authority are known. */
const NOT_YET = 1_000;
const FIRST_RETRY = 5_000;
const LAST_RETRY = 300_000;

/** Brings one agent to what its spec says: observe, plan, apply, summarize. The only writer of Agent status. */
export class AgentReconciler {
  readonly #deps: AgentDeps;
  readonly statuses = new OwnStatuses();
  readonly #written = new OwnWrites<StoredAgent>();
  readonly #liveAt = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #troubles = new Map<string, number>();

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
    // The write would have failed had another pod been bound since: what was held is nobody's.
    await giveBack(this.#deps.bus, agent.metadata.uid, held, log, signal);
    return this.#outcome(agent.metadata.uid, planned, applied);
  }

  /** An agent is gone: nothing is kept of it. */
  forget(uid: string): void {
    this.#liveAt.delete(uid);
    this.#refusals.delete(uid);
    this.#troubles.delete(uid);
    this.statuses.forget(uid);
    this.#deps.examination.forget(uid);
    this.#deps.failures.forget(uid);
  }

  async #apply(observed: Observed, planned: Plan, signal: AbortSignal): Promise<Applied> {
    const { agent, warm } = observed;
    const makes = planned.step.kind === 'create' || planned.step.kind === 'claim';
    let taken = false;
    try {
      if (makes && !(await this.#deps.namespaces.prepare(agent.metadata.namespace, signal))) {
        return {
          kind: 'waiting',
          message:
            'waits for the gateway: its Service has no address or its certificate is not made yet; look at the Services of the release and at the log of the operator',
        };
      }
      const applied = await apply(this.#deps.client, agent, planned, signal);
      taken = applied.kind === 'bound' && applied.pod.metadata.uid === warm?.metadata.uid;
      this.#troubles.delete(agent.metadata.uid);
      return applied;
    } catch (error) {
      const troubles = (this.#troubles.get(agent.metadata.uid) ?? 0) + 1;
      this.#troubles.set(agent.metadata.uid, troubles);
      // A pod that stays is no less bound because something beside it failed.
      const told = makes ? refusalBy(error, troubles) : undefined;
      if (told === undefined) throw error;
      return told;
    } finally {
      if (warm !== undefined && !taken) this.#deps.pool.release(warm);
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
    const liveToo = now.getTime() - (this.#liveAt.get(uid) ?? 0) >= LIVE_EVERY;
    const isDifferent = statusDiffers(agent.status, status, liveToo);
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
    this.#liveAt.set(uid, now.getTime());
    // The claim was a write that the pod itself shows; with an Event for each one a pool would cost more than it saves.
    if (applied.kind === 'bound' && applied.claimed === true) return;
    const subject = { apiVersion: agent.apiVersion, kind: agent.kind, metadata: { name, namespace, uid } };
    for (const note of transitions(agent.status?.conditions, status.conditions ?? [], 'Ready')) {
      this.#deps.events.record(subject, note);
    }
  }

  #outcome(uid: string, planned: Plan, applied: Applied): Outcome {
    if (applied.kind === 'waiting') return { kind: 'again', after: NOT_YET };
    if (applied.kind === 'refused') {
      const count = this.#refusals.get(uid) ?? 0;
      this.#refusals.set(uid, count + 1);
      return { kind: 'again', after: Math.min(FIRST_RETRY * 2 ** count, LAST_RETRY) };
    }
    if (planned.step.kind !== 'none') this.#refusals.delete(uid);
    return planned.again === undefined ? { kind: 'done' } : { kind: 'again', after: planned.again };
  }
}
