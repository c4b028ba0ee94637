import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

/** Removes everything of an agent that is gone, in every stream and bucket but the audit. */
export async function sweepAgent(_connection: BusConnection, _agentUid: string): Promise<void> {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}

/** Uids that anything is kept for in inbox, sessions, session tools or memory. */
export async function agentsWithLeftovers(_connection: BusConnection): Promise<string[]> {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
