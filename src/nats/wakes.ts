import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

export interface Wakes {
  /** Asks for a pod. Several for one agent that nobody has taken yet are one. */
  publish(agentUid: string): Promise<void>;
  /** Calls `wake` for each until the signal is aborted. One whose `wake` throws comes again. */
  consume(wake: (agentUid: string) => Promise<void>, signal: AbortSignal): Promise<void>;
}

export function createWakes(_connection: BusConnection): Wakes {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
