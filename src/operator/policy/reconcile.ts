import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { INDEX } from '../agent/observe.ts';
import type { ValidationCache } from '../agent/validation-cache.ts';
import { type Cache, parseKey } from '../kube/cache.ts';
import { sameConditions } from '../conditions.ts';
import { prunePolicy } from '../kube/prune.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../kube/types.ts';
import type { SpendReader } from '../ports.ts';
import { policyStatus } from './plan.ts';

export interface PolicyDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly agents: Cache<StoredAgent>;
  readonly policies: Cache<StoredPolicy>;
  readonly validation: ValidationCache;
  readonly events: EventRecorder;
  readonly spend: SpendReader | undefined;
}

/** Interval at which spend and the agent count are written to the status. */
const STATUS_INTERVAL_MS = 60_000;

/** The only writer of TrustPolicy status. */
export class PolicyReconciler {
  readonly #deps: PolicyDeps;
  readonly #statuses: StatusWriter<StoredPolicy>;

  constructor(deps: PolicyDeps) {
    this.#deps = deps;
    this.#statuses = new StatusWriter<StoredPolicy>(deps, {
      type: TYPES.trustPolicies,
      awaited: 'Ready',
      differs,
      patch: (_before, after) => after,
      prune: prunePolicy,
    });
  }

  async reconcile(key: string, { log, signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.policies.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      return { kind: 'done' };
    }
    const policy = this.#statuses.latest(cached);
    const status = policyStatus({
      policy,
      agents: this.#deps.agents.byIndex(INDEX.policy, key).length,
      specError: this.#deps.validation.specError(policy),
      spend: await this.#spend(policy.metadata.uid, log, signal),
      now: this.#deps.clock.now(),
    });
    const events = await this.#statuses.write(cached, policy, status, signal);
    this.#statuses.recordEvents(policy, events ?? []);
    return this.#deps.spend === undefined ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: STATUS_INTERVAL_MS };
  }

  isExternalStatus(policy: StoredPolicy): boolean {
    return this.#statuses.isExternalWrite(policy);
  }

  /** Drops the in-memory state of a deleted policy. */
  forget(policy: StoredPolicy): void {
    this.#statuses.forget(policy);
    this.#deps.validation.forget(policy.metadata.uid);
  }

  /** When the ledger cannot be read, the spend in the status does not change. */
  async #spend(uid: string, log: Logger, signal: AbortSignal): Promise<Spend[] | undefined> {
    try {
      return await this.#deps.spend?.ofPolicy(uid, signal);
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the spend cannot be read from the ledger');
      return undefined;
    }
  }
}

function differs({ status }: StoredPolicy, after: NonNullable<StoredPolicy['status']>): boolean {
  if (status?.observedGeneration !== after.observedGeneration || status?.agents !== after.agents) return true;
  if (JSON.stringify(status?.spend) !== JSON.stringify(after.spend)) return true;
  return !sameConditions(status?.conditions, after.conditions ?? []);
}
