import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { isReconciled } from '../conditions.ts';
import type { AgentActivity, InFlightMessage } from '../ports.ts';
import type { ApplyResult } from './apply.ts';
import type { ObservedAgent } from './observed.ts';
import type { PodPlan } from './plan.ts';

/** One reconcile of one agent. */
interface ReconcileScope {
  readonly observed: ObservedAgent;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Moves the messages in flight from an agent's previous pod to its new pod, in two steps around the creation or the claim of the new pod,
 * which binds it. An unavailable NATS delays nothing: NATS redelivers the messages after their ack wait.
 */
export class MessageHandover {
  readonly #agentActivity: AgentActivity | undefined;

  constructor(agentActivity: AgentActivity | undefined) {
    this.#agentActivity = agentActivity;
  }

  /**
   * Step 1, before the new pod exists or is claimed: afterwards a message could be the new pod's own. None when the plan binds no
   * new pod, and for a new agent, which had none before.
   */
  async readInFlight(
    { step }: PodPlan,
    { observed: { agent, pods }, log, signal }: ReconcileScope,
  ): Promise<readonly InFlightMessage[]> {
    const { status, metadata } = agent;
    if (this.#agentActivity === undefined || (step.kind !== 'create' && step.kind !== 'claim')) return [];
    if (!isReconciled(status?.conditions) && pods.length === 0) return [];
    if (this.#agentActivity.unavailableSince() !== undefined) return [];
    try {
      return await this.#agentActivity.inFlightMessages(metadata.uid, signal);
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the messages in flight of the previous pod cannot be read');
      return [];
    }
  }

  /**
   * Step 2, when the new pod exists: the gateway then rejects the previous pod, and NATS redelivers at once. Not for a pod that existed
   * already: the messages could be its own.
   */
  async redeliver(
    inFlight: readonly InFlightMessage[],
    applied: ApplyResult,
    { observed, log, signal }: ReconcileScope,
  ): Promise<void> {
    if (this.#agentActivity === undefined || inFlight.length === 0) return;
    if (applied.kind !== 'bound' || applied.origin === undefined) return;
    const { uid } = observed.agent.metadata;
    try {
      const redelivered = await this.#agentActivity.redeliver(uid, inFlight, signal);
      if (redelivered > 0) log.info({ agentUid: uid, redelivered }, 'redelivered the messages of the previous pod');
    } catch (error) {
      const message = 'the messages in flight of the previous pod are redelivered only after their ack wait';
      log.warn({ error: messageOf(error) }, message);
    }
  }
}
