import type { AgentStatus } from '../../../api/v1alpha1/agent.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isReconciled, reasonOf } from '../../conditions.ts';
import type { StoredAgent } from '../../kube/types.ts';
import type { ApplyResult } from '../apply.ts';

type PodReference = NonNullable<AgentStatus['pod']>;

/** How long the first status may wait for a starting pod. Most pods are ready before. */
const GRACE_MS = 5_000;

/**
 * Defers the first status of a new agent while its pod starts, so that most agents need one status write instead of two. Until then the
 * status is the default of the CRD, which says the same: not ready yet. Every other state is written at once, and so is every later status.
 * Kept in memory: after a restart the operator finds the pod by its label.
 */
export class FirstStatuses {
  readonly #clock: Clock;
  readonly #deferred = new Map<string, { readonly pod: PodReference; readonly dueAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does the write of this status wait? Call once per reconcile, after the plan was applied. */
  defer({ metadata: { uid }, status: stored }: StoredAgent, status: AgentStatus, applied: ApplyResult): boolean {
    const now = this.#clock.monotonic();
    const isStarting = applied.kind === 'bound' && reasonOf(status.conditions, 'Ready') === 'Starting';
    const dueAt = this.#deferred.get(uid)?.dueAt ?? now + GRACE_MS;
    if (isReconciled(stored?.conditions) || !isStarting || status.pod === undefined || now >= dueAt) {
      this.#deferred.delete(uid);
      return false;
    }
    this.#deferred.set(uid, { pod: status.pod, dueAt });
    return true;
  }

  /** The pod that the deferred status names. The cache may not contain it yet. */
  podOf(agentUid: string): PodReference | undefined {
    return this.#deferred.get(agentUid)?.pod;
  }

  /** Milliseconds until the deferred status is written; undefined when none is deferred. */
  remainingMs(agentUid: string): number | undefined {
    const deferred = this.#deferred.get(agentUid);
    return deferred === undefined ? undefined : Math.max(0, deferred.dueAt - this.#clock.monotonic());
  }

  forget(agentUid: string): void {
    this.#deferred.delete(agentUid);
  }
}
