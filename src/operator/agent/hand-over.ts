import { messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { StoredAgent } from '../kube-types.ts';
import type { Bus, HeldMessage } from '../ports.ts';
import type { Applied } from './apply.ts';

/**
 * The message that was in flight with the pods before, to be asked for before a new pod is bound: what is in flight then cannot be the new
 * one's work. Nothing for an agent that had no status yet. A bus that does not answer holds nobody up: the message comes after its lease.
 */
export async function heldBefore(
  bus: Bus | undefined,
  { status, metadata }: StoredAgent,
  applied: Applied,
  log: Logger,
  signal: AbortSignal,
): Promise<HeldMessage | undefined> {
  if (bus === undefined || applied.kind !== 'bound' || status?.conditions === undefined) return undefined;
  if (status.pod?.uid === applied.pod.metadata.uid || bus.unavailableSince() !== undefined) return undefined;
  try {
    return await bus.held(metadata.uid, signal);
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'the bus did not say what was in flight with the pod before');
    return undefined;
  }
}

/** Once the new pod is bound, its gateways refuse the old ones: what these held is given to the new one at once. */
export async function giveBack(
  bus: Bus | undefined,
  agentUid: string,
  held: HeldMessage | undefined,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  if (bus === undefined || held === undefined) return;
  try {
    const given = await bus.release(agentUid, held, signal);
    if (given) log.info({ agentUid }, 'the message that was in flight with the pod before goes to the new one');
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'what was in flight with the pod before comes only after its lease');
  }
}
