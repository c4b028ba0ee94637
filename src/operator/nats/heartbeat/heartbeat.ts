import { type DeliveryState, openDeliveries } from '../../../nats/inbox/delivery-state.ts';

/** A pod that works extends its deliveries every 30 to 60 seconds. */
export const HEARTBEAT_TIMEOUT_MS = 180_000;

/** What is known of an agent that has messages. Times in epoch milliseconds. */
export interface ObservedDeliveries {
  readonly state: DeliveryState;
  /** When the state was written, that is, when a message was last delivered, extended or ended; 0 when it never was. */
  readonly writtenAt: number;
  /** Since when this process knows of messages of the agent, without an interruption. */
  readonly knownSince: number;
}

/** `Unknown`: this process does not watch the agent for long enough. */
export type Heartbeat = 'Reported' | 'Missed' | 'Unknown';

/** Whether the pod of an agent with messages works on them. Messages that wait for an approval or for their repetition ask nothing of it. Pure. */
export function heartbeatOf({ state, writtenAt, knownSince }: ObservedDeliveries, now: number): Heartbeat {
  if (now - writtenAt < HEARTBEAT_TIMEOUT_MS) return 'Reported';
  const open = openDeliveries(state);
  const isLost = state.current.some(({ until }) => until <= now);
  const isIgnored = state.waiting.some(({ until }) => now - until >= HEARTBEAT_TIMEOUT_MS);
  if (open.length > 0 && !isLost && !isIgnored) return 'Reported';
  return now - knownSince < HEARTBEAT_TIMEOUT_MS ? 'Unknown' : 'Missed';
}
