import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { isReconciled } from '../conditions.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { AgentActivity, InFlightMessage } from '../ports.ts';
import type { ApplyResult } from './apply.ts';

/** One reconcile of one agent. */
interface ReconcileScope {
  readonly agent: StoredAgent;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Moves the message in flight from an agent's previous pod to its new pod, in two steps around the status write that binds the new pod. An
 * unavailable NATS delays nothing: NATS redelivers the message after its ack wait.
 */
export class MessageHandover {
  readonly #agentActivity: AgentActivity | undefined;

  constructor(agentActivity: AgentActivity | undefined) {
    this.#agentActivity = agentActivity;
  }

  /**
   * Step 1, before the status binds the new pod: afterwards the message could be the new pod's own. Undefined when no other pod is bound,
   * and for an agent that is reconciled for the first time.
   */
  async readInFlight(
    applied: ApplyResult,
    { agent, log, signal }: ReconcileScope,
  ): Promise<InFlightMessage | undefined> {
    const { status, metadata } = agent;
    if (this.#agentActivity === undefined || applied.kind !== 'bound') return undefined;
    if (!isReconciled(status?.conditions) || status?.pod?.uid === applied.pod.metadata.uid) return undefined;
    if (this.#agentActivity.unavailableSince() !== undefined) return undefined;
    try {
      return await this.#agentActivity.inFlightMessage(metadata.uid, signal);
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the in-flight message of the previous pod cannot be read');
      return undefined;
    }
  }

  /** Step 2, after the status binds the new pod: the gateway then rejects the previous pod, and NATS redelivers at once. */
  async redeliver(inFlight: InFlightMessage | undefined, { agent, log, signal }: ReconcileScope): Promise<void> {
    if (this.#agentActivity === undefined || inFlight === undefined) return;
    const { uid } = agent.metadata;
    try {
      const isRedelivered = await this.#agentActivity.redeliver(uid, inFlight, signal);
      if (isRedelivered) log.info({ agentUid: uid }, 'redelivered the in-flight message of the previous pod');
    } catch (error) {
      const message = 'the in-flight message of the previous pod is redelivered only after its ack wait';
      log.warn({ error: messageOf(error) }, message);
    }
  }
}
