import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Outcome } from '../../kube/outcome.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { INDEX } from '../agent/observe.ts';
import type { Examination } from '../agent/examination.ts';
import { type Cache, partsOf } from '../cache.ts';
import { sameConditions, transitions } from '../conditions.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../kube-types.ts';
import { OwnStatuses } from '../own-statuses.ts';
import { OwnWrites } from '../own-writes.ts';
import type { SpendReader } from '../ports.ts';
import { policyStatus } from './plan.ts';

export interface PolicyDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly examination: Examination;
  readonly events: EventRecorder;
  readonly spend: SpendReader | undefined;
}

/** How often spend is folded into the status, and how long the count of agents may lag. */
const FOLD_EVERY = 60_000;

/** The only writer of TrustPolicy status. */
export class PolicyReconciler {
  readonly #deps: PolicyDeps;
  readonly statuses = new OwnStatuses();
  readonly #written = new OwnWrites<StoredPolicy>();

  constructor(deps: PolicyDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, { log, signal }: { log: Logger; signal: AbortSignal }): Promise<Outcome> {
    const { namespace, name } = partsOf(key);
    const cached = this.#deps.policies.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#written.forget(key);
      return { kind: 'done' };
    }
    const policy = this.#written.latest(key, cached);
    const { uid, resourceVersion } = policy.metadata;
    const status = policyStatus({
      policy,
      agents: this.#deps.agents.byIndex(INDEX.policy, key).length,
      specProblem: this.#deps.examination.specProblem(policy),
      spend: await this.#spend(uid, log, signal),
      now: this.#deps.clock.now(),
    });
    const isDifferent = differs(policy, status);
    this.statuses.expect(uid, isDifferent ? status : policy.status);
    if (isDifferent) {
      const patch = { metadata: { resourceVersion }, status };
      const ref = { namespace, name };
      const stored = await this.#deps.client.patch<StoredPolicy>(TYPES.trustPolicies, ref, patch, signal, {
        subresource: 'status',
      });
      this.#written.wrote(key, cached.metadata.resourceVersion, stored);
      const subject = { apiVersion: policy.apiVersion, kind: policy.kind, metadata: { name, namespace, uid } };
      for (const note of transitions(policy.status?.conditions, status.conditions ?? [], 'Ready')) {
        this.#deps.events.record(subject, note);
      }
    }
    return this.#deps.spend === undefined ? { kind: 'done' } : { kind: 'again', after: FOLD_EVERY };
  }

  /** A policy is gone: nothing is kept of it. */
  forget(uid: string): void {
    this.#deps.examination.forget(uid);
    this.statuses.forget(uid);
  }

  /** A ledger that does not answer leaves what is written: spend is never taken back. */
  async #spend(uid: string, log: Logger, signal: AbortSignal): Promise<Spend[] | undefined> {
    try {
      return await this.#deps.spend?.ofPolicy(uid, signal);
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the ledger did not say what was spent');
      return undefined;
    }
  }
}

function differs({ status }: StoredPolicy, after: NonNullable<StoredPolicy['status']>): boolean {
  if (status?.observedGeneration !== after.observedGeneration || status?.agents !== after.agents) return true;
  if (JSON.stringify(status?.spend) !== JSON.stringify(after.spend)) return true;
  return !sameConditions(status?.conditions, after.conditions ?? []);
}
