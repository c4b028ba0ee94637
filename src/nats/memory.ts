import type { Memory } from '../agent/ports.ts';
import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

/** The memory of one agent. */
export function createMemory(_connection: BusConnection, _agentUid: string): Memory {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
