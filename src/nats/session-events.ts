import { type ConsumerMessages, DeliverPolicy } from '@nats-io/jetstream';
import { onAbort } from '../lib/async/abort.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { isStreamMissing } from './connection/errors.ts';
import { STREAMS, subjects, token } from './jetstream/names.ts';
import { deduplicationId, publish, type PublishOptions } from './jetstream/publish.ts';
import { BaseSequenceCache, readStoreGeneration } from './jetstream/store-generation.ts';
import { parseJsonBytes, lastMessage, purge, readMessages } from './jetstream/stream-reader.ts';
import {
  isEnd,
  lastReply,
  mergeReplies,
  parseEnd,
  publishEnd,
  ReplyCursor,
  type SessionEnd,
  storedReplies,
} from './session-replies.ts';

/** One event of a session. */
export type SessionEvent = { kind: 'event'; event: StampedEvent } | SessionEnd;

/** An event with its stream sequence, which `after` of a follower refers to. Assignable to `SessionStreamLine` of the user API. */
export type StoredSessionEvent = SessionEvent & { seq: number };

export interface FollowOptions {
  /** Events after this sequence; 0 for all stored events. */
  after: number;
  signal: AbortSignal;
  /** Throws TEMPER_NATS_DATA_LOST when the store of `after` was lost, instead of continuing with the events of the new store. */
  failOnStoreLoss?: boolean;
}

interface AppendEventOptions {
  /** Deduplication key, any text: of the events with one key the first is stored. */
  once?: string | undefined;
  /** Sent as a header. */
  traceparent?: string | undefined;
}

export interface SessionEvents {
  /**
   * Returns the event's sequence. Within 30 minutes the first reply to a message is stored and repeated ones are ignored; likewise
   * events of one agent with the same `once` key. Throws TEMPER_BUS_*.
   */
  append(agentUid: string, session: string, line: SessionEvent, options?: AppendEventOptions): Promise<number>;
  /** Stored events, oldest first, at most `limit`. */
  read(agentUid: string, session: string, after: number, limit: number): Promise<StoredSessionEvent[]>;
  /** The sequence of the session's last event; without events the sequence before the store's first event. */
  lastSequence(agentUid: string, session: string): Promise<number>;
  /** The sequence before the first event of this store. */
  baseSequence(): Promise<number>;
  /** Stored and new events, in order and without gaps, until the signal is aborted; then returns without an error. */
  follow(agentUid: string, session: string, options: FollowOptions): AsyncIterable<StoredSessionEvent>;
  /** Deletes all events of a deleted agent. */
  remove(agentUid: string): Promise<void>;
}

/** Maximum size of the events in flight to one follower. */
const MAX_IN_FLIGHT_BYTES = 512 * 1_024;
const RETRY_MS = 500;
/** The server deletes the ephemeral consumer of a follower that disconnected without deleting it after this time. */
const INACTIVE_THRESHOLD_MS = 30_000;

/** A follower reads the stored replies again after this time: a flood of events may have removed one that it waits for. */
const REREAD_MS = 60_000;

/** Transcripts and replies, stored for one day. */
export function createSessionEvents(connection: JetStreamConnection): SessionEvents {
  const generation = new BaseSequenceCache(connection);
  const storedEvents = async function* (subject: string, after: number): AsyncGenerator<StoredSessionEvent> {
    for await (const { data, seq } of readMessages(connection, STREAMS.events, subject, after + 1)) {
      const line = parseEvent(parseJsonBytes(data));
      if (line !== undefined) yield { ...line, seq };
    }
  };
  const merged = (
    agentUid: string,
    session: string,
    { after, from, cursor }: { after: number; from: number; cursor: ReplyCursor },
  ): AsyncGenerator<StoredSessionEvent> => {
    const replies = storedReplies(connection, subjects.replies(agentUid, session), from, cursor);
    return mergeReplies(storedEvents(subjects.events(agentUid, session), after), replies, cursor);
  };
  return {
    async append(agentUid, session, line, { once, traceparent } = {}) {
      if (line.kind !== 'event') {
        const id = `${token(agentUid)}:${line.kind}:${line.message}`;
        return publishEnd(connection, agentUid, session, line, { id, traceparent });
      }
      const options = { ...deduplicationOptions(agentUid, once), traceparent };
      const ack = await publish(connection, subjects.events(agentUid, session), line as unknown as Json, options);
      return ack?.seq ?? 0;
    },
    async read(agentUid, session, after, limit) {
      const lines: StoredSessionEvent[] = [];
      if (limit <= 0) return lines;
      for await (const line of merged(agentUid, session, { after, from: after, cursor: new ReplyCursor() })) {
        lines.push(line);
        if (lines.length >= limit) break;
      }
      return lines;
    },
    async lastSequence(agentUid, session) {
      const found = await lastMessage(connection, STREAMS.events, subjects.events(agentUid, session));
      return found?.seq ?? (await lastReply(connection, agentUid, session)) ?? generation.get();
    },
    baseSequence: () => generation.get(),
    follow(agentUid, session, options) {
      const { after } = options;
      const cursor = new ReplyCursor();
      const stored = (last: number) => merged(agentUid, session, { after: last, from: after, cursor });
      return followSession(connection, subjects.events(agentUid, session), { ...options, stored, cursor });
    },
    async remove(agentUid) {
      await purge(connection, STREAMS.events, `temper.events.${token(agentUid)}.*`);
      await purge(connection, STREAMS.replies, `temper.replies.${token(agentUid)}.*`);
    },
  };
}

interface FollowState extends FollowOptions {
  /** Stored events and replies after a sequence. */
  stored: (last: number) => AsyncIterable<StoredSessionEvent>;
  cursor: ReplyCursor;
}

async function* followSession(
  connection: JetStreamConnection,
  subject: string,
  { after, signal, failOnStoreLoss = false, stored, cursor }: FollowState,
): AsyncGenerator<StoredSessionEvent> {
  const ended = AbortSignal.any([signal, connection.closed]);
  let last = after;
  while (!ended.aborted) {
    try {
      last = await resumeSequence(connection, last, failOnStoreLoss);
      // Stored events are read in pages: all at once could exceed the server's `max_pending` for one client.
      for await (const line of stored(last)) {
        if (ended.aborted) return;
        yield line;
        last = Math.max(last, line.seq);
      }
      for await (const line of newEvents(connection, subject, last + 1, ended)) {
        if (!isEnd(line) || cursor.isNew(line)) yield line;
        last = line.seq;
      }
    } catch (error) {
      if (!ended.aborted && !isTransient(error, connection)) throw error;
    }
    await connection.clock.sleep(RETRY_MS, ended).catch(() => undefined);
  }
}

/** The sequence after which to continue in the current store. */
async function resumeSequence(
  connection: JetStreamConnection,
  last: number,
  failOnStoreLoss: boolean,
): Promise<number> {
  const { baseSequence, createdAt } = await readStoreGeneration(connection);
  if (last >= baseSequence) return last;
  if (last > 0 && failOnStoreLoss) {
    const message = `NATS lost its store and has a new one since ${createdAt}: waiting messages are lost; send the message again`;
    throw new TemperError('TEMPER_NATS_DATA_LOST', message, { retry: 'never' });
  }
  return baseSequence;
}

/** True for errors that end by themselves: the server becomes available again, and the operator recreates lost streams. */
function isTransient(error: unknown, connection: JetStreamConnection): boolean {
  return !connection.state().connected || isStreamMissing(error instanceof Error ? (error.cause ?? error) : error);
}

function deduplicationOptions(agentUid: string, once: string | undefined): PublishOptions {
  return once === undefined ? {} : { id: deduplicationId(`${token(agentUid)}\n${once}`) };
}

/** New events, until the signal is aborted, the server ends the consumer, or it is time to read the replies again. */
async function* newEvents(
  connection: JetStreamConnection,
  subject: string,
  fromSequence: number,
  signal: AbortSignal,
): AsyncGenerator<StoredSessionEvent> {
  const options = {
    filter_subjects: subject,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: fromSequence,
    inactive_threshold: INACTIVE_THRESHOLD_MS,
  };
  const consumer = await connection.request(() => connection.jetstream.consumers.get(STREAMS.events, options));
  const messages: ConsumerMessages = await consumer.consume({ max_bytes: MAX_IN_FLIGHT_BYTES });
  const stop = (): void => messages.stop();
  using _cancellation = onAbort(signal, stop);
  const ended = new AbortController();
  const reread = connection.clock.sleep(REREAD_MS, AbortSignal.any([signal, ended.signal])).then(stop, () => undefined);
  // The client alone would wait for heartbeats of a server that has deleted this consumer.
  const unsubscribe = connection.onChange(stop);
  try {
    if (signal.aborted) return;
    for await (const { data, seq } of messages) {
      const line = parseEvent(parseJsonBytes(data));
      if (line !== undefined) yield { ...line, seq };
    }
  } finally {
    unsubscribe();
    messages.stop();
    ended.abort();
    await reread;
    // Otherwise the server deletes it after the inactive threshold.
    if (connection.state().connected) await consumer.delete().catch(() => false);
  }
}

/** Parses a stored event; undefined for an invalid one. */
function parseEvent(value: Json | undefined): SessionEvent | undefined {
  if (!isJsonObject(value)) return undefined;
  return value.kind === 'event' ? parseToolEvent(value.event) : parseEnd(value);
}

/** Pods report these events: only `type` and `time` are validated. */
function parseToolEvent(event: Json | undefined): SessionEvent | undefined {
  if (!isJsonObject(event) || typeof event.type !== 'string' || typeof event.time !== 'string') return undefined;
  return { kind: 'event', event: event as unknown as StampedEvent };
}
