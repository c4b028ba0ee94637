import type { Digest } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { BusConnection } from './connection.ts';

/** Tools at tier Session: kept for 7 days after they were put. */
export interface SessionTools {
  /** False when the session holds this digest already; the first stays. */
  put(agentUid: string, tool: RegisteredTool): Promise<boolean>;
  get(agentUid: string, session: string, digest: Digest): Promise<RegisteredTool | undefined>;
  /** Of one session, or of all sessions of the agent; oldest first. */
  list(agentUid: string, session?: string): Promise<RegisteredTool[]>;
  remove(agentUid: string, session: string, digest: Digest): Promise<void>;
  removeSession(agentUid: string, session: string): Promise<void>;
}

export function createSessionTools(_connection: BusConnection): SessionTools {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
