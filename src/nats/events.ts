import type { ErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { BusConnection } from './connection.ts';

/** One line of what happens in a session. */
export type EventLine =
  | { kind: 'event'; event: StampedEvent }
  | { kind: 'reply'; message: string; text: string; ending: 'complete' | 'cut' | 'refusal' }
  | { kind: 'failed'; message: string; code: ErrorCode; text: string };

/** With its place in the stream: what `after` of a follower names. Assignable to `FollowLine` of the people's API. */
export type StoredLine = EventLine & { seq: number };

export interface FollowOptions {
  /** Lines after this one; 0 for all there are. */
  after: number;
  signal: AbortSignal;
}

export interface Events {
  /** Returns the line's seq. A reply or a failure is stored once a message, whoever repeats it. */
  append(agentUid: string, session: string, line: EventLine): Promise<number>;
  /** What is there, oldest first, at most `limit` lines. */
  read(agentUid: string, session: string, after: number, limit: number): Promise<StoredLine[]>;
  /** What is there and what comes, until the signal is aborted; ends then without an error. */
  follow(agentUid: string, session: string, options: FollowOptions): AsyncIterable<StoredLine>;
  /** For a removed agent. */
  remove(agentUid: string): Promise<void>;
}

export function createEvents(_connection: BusConnection): Events {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
