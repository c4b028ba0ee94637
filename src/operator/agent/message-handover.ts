import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { AgentActivity, InFlightMessage } from '../ports.ts';
import type { ApplyResult } from './apply.ts';

/**
 * Reads the message in flight with the agent's previous pod. Call before binding the new pod; afterwards the message could be the new
 * pod's own. Undefined for an agent without a status. An unavailable NATS does not delay the agent: NATS redelivers the message after its
 * ack wait.
 */
export async function readInFlight(
  agentActivity: AgentActivity | undefined,
  { status, metadata }: StoredAgent,
  applied: ApplyResult,
  log: Logger,
  signal: AbortSignal,
): Promise<InFlightMessage | undefined> {
  if (agentActivity === undefined || applied.kind !== 'bound' || status?.conditions === undefined) return undefined;
  if (status.pod?.uid === applied.pod.metadata.uid || agentActivity.unavailableSince() !== undefined) return undefined;
  try {
    return await agentActivity.inFlightMessage(metadata.uid, signal);
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'the in-flight message of the previous pod cannot be read');
    return undefined;
  }
}

/** Redelivers the message at once. Call after the new pod is bound: the gateway then rejects the previous pod. */
export async function redeliver(
  agentActivity: AgentActivity | undefined,
  agentUid: string,
  held: InFlightMessage | undefined,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  if (agentActivity === undefined || held === undefined) return;
  try {
    const isRedelivered = await agentActivity.redeliver(agentUid, held, signal);
    if (isRedelivered) log.info({ agentUid }, 'redelivered the in-flight message of the previous pod');
  } catch (error) {
    log.warn(
      { error: messageOf(error) },
      'the in-flight message of the previous pod is redelivered only after its ack wait',
    );
  }
}
