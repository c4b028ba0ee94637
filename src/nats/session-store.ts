import type { SessionStore } from '../agent/ports.ts';
import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';

export interface StoredSession {
  session: string;
  /** RFC 3339. */
  openedAt: string;
  lastUsedAt: string;
  items: number;
  tainted: boolean;
}

export interface BusSessionStore extends SessionStore {
  /** Newest use first. */
  list(): Promise<StoredSession[]>;
  /** Ids of the sessions not used for so long; whoever sweeps closes them with all that hangs on them. */
  idle(milliseconds: number): Promise<string[]>;
}

/** The sessions of one agent. */
export function createSessionStore(_connection: BusConnection, _agentUid: string): BusSessionStore {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
