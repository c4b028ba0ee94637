import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';

/** Requests a pod for an agent without one. */
export async function requestWakeup(
  { uid, podUid }: AgentState,
  { wakeups: wakes }: Pick<GatewayDeps, 'wakeups'>,
): Promise<void> {
  if (podUid === undefined) await wakes.publish(uid);
}
