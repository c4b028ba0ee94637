import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { Envelope } from '../bus/port.ts';
import type { BusConnection } from './connection.ts';

/** A message that was given up. */
export interface BuriedMessage {
  /** Unique, `[a-z0-9-]`. */
  id: string;
  agentUid: string;
  /** RFC 3339: when it was given up. */
  time: string;
  deliveries: number;
  code: ErrorCode;
  /** Printable. */
  reason: string;
  /** Absent when the message was no envelope or was gone before it could be copied. */
  message?: Envelope;
}

export interface DeadLetters {
  /** Newest first, at most 1,000. All agents when no uid is given. */
  list(agentUid?: string): Promise<BuriedMessage[]>;
  get(agentUid: string, id: string): Promise<BuriedMessage | undefined>;
  /** Into the inbox again, and out of here. TEMPER_NOT_FOUND, or TEMPER_MESSAGE_INVALID when there is no message in it. */
  retry(agentUid: string, id: string): Promise<void>;
  /** TEMPER_NOT_FOUND when there is none. */
  drop(agentUid: string, id: string): Promise<void>;
  count(agentUid: string): Promise<number>;
  /** For a removed agent. */
  remove(agentUid: string): Promise<void>;
  /** Buries what the server gave up, as it tells, until the signal is aborted. Several replicas may run it. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks at every inbox for messages given up of which nobody was told. Returns how many it buried. */
  reconcile(): Promise<number>;
}

export function createDeadLetters(_connection: BusConnection): DeadLetters {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
