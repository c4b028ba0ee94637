import { TemperError } from '../lib/errors.ts';
import type { StampedEvent } from '../tools/events.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { notify } from './notify/notifications.ts';
import { followSubject } from './notify/follow.ts';
import { STREAMS, subjects, token } from './jetstream/names.ts';
import { deduplicationId, publish, type PublishOptions } from './jetstream/publish.ts';
import { BaseSequenceCache, readStoreGeneration } from './jetstream/store-generation.ts';
import { parseJsonBytes } from '../lib/json.ts';
import { lastMessage, purge, readMessages } from './jetstream/stream-reader.ts';
import {
  parseBatch,
  type SessionEvent,
  splitEvents,
  type StoredBatch,
  type StoredSessionEvent,
  toStoredEvents,
  unfold,
} from './session-event-batch.ts';
import {
  findEnd,
  isEnd,
  lastReply,
  mergeReplies,
  publishEnd,
  ReplyCursor,
  replyPosition,
  type SessionEnd,
  storedReplies,
} from './session-replies.ts';

export type { SessionEvent, StoredSessionEvent };

export interface FollowOptions {
  /** Events after this sequence; 0 for all stored events. */
  after: number;
  /** Lines of the batch behind `after` that the reader has read already; 0 when absent. */
  skip?: number;
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
  /**
   * Stores events at once, in as few messages as they fit into. All of them are stored or, after an error, the first ones: repeat the
   * call with the same `once` then, which stores each once. Throws like `append`.
   */
  appendAll(agentUid: string, session: string, events: readonly StampedEvent[], once: string): Promise<void>;
  /** Stored events behind the position, oldest first, at most `limit`. */
  read(agentUid: string, session: string, after: number, limit: number, skip?: number): Promise<StoredSessionEvent[]>;
  /** The sequence of the session's last event; without events the sequence before the store's first event. */
  lastSequence(agentUid: string, session: string): Promise<number>;
  /** The last reply of the session, as `after` of `end`; 0 without one. */
  replyPosition(agentUid: string, session: string): Promise<number>;
  /** How a message ended, of the replies after this position, as soon as a follower has it. Reads at most one event. */
  end(agentUid: string, of: { session: string; message: string; after: number }): Promise<SessionEnd | undefined>;
  /** The sequence before the first event of this store. */
  baseSequence(): Promise<number>;
  /** Stored and new events, in order and without gaps, until the signal is aborted; then returns without an error. */
  follow(agentUid: string, session: string, options: FollowOptions): AsyncIterable<StoredSessionEvent>;
  /** Deletes all events of a deleted agent. */
  remove(agentUid: string): Promise<void>;
}

/** Transcripts and replies, stored for one day. */
export function createSessionEvents(connection: JetStreamConnection): SessionEvents {
  const generation = new BaseSequenceCache(connection);
  return {
    async append(agentUid, session, line, { once, traceparent } = {}) {
      if (line.kind !== 'event') {
        const id = `${token(agentUid)}:${line.kind}:${line.message}`;
        return publishEnd(connection, agentUid, session, line, { id, traceparent });
      }
      const options = { ...deduplicationOptions(agentUid, once), traceparent };
      const ack = await publish(connection, subjects.events(agentUid, session), toStoredEvents([line.event]), options);
      notify(connection, subjects.notifySession(agentUid, session));
      return ack?.seq ?? 0;
    },
    async appendAll(agentUid, session, events, once) {
      for (const [index, batch] of splitEvents(events).entries()) {
        const options = deduplicationOptions(agentUid, `${once}/${index}`);
        await publish(connection, subjects.events(agentUid, session), toStoredEvents(batch), options);
        notify(connection, subjects.notifySession(agentUid, session));
      }
    },
    async read(agentUid, session, after, limit, skip = 0) {
      const lines: StoredSessionEvent[] = [];
      if (limit <= 0) return lines;
      const range = { agentUid, session, after, from: after, cursor: new ReplyCursor() };
      for await (const line of unfold(merged(connection, range), { seq: after, skip })) {
        lines.push(line);
        if (lines.length >= limit) break;
      }
      return lines;
    },
    async lastSequence(agentUid, session) {
      const found = await lastMessage(connection, STREAMS.events, subjects.events(agentUid, session));
      return found?.seq ?? (await lastReply(connection, agentUid, session)) ?? generation.get();
    },
    replyPosition: (agentUid, session) => replyPosition(connection, agentUid, session),
    end: (agentUid, of) => findEnd(connection, agentUid, of),
    baseSequence: () => generation.get(),
    follow(agentUid, session, { after, skip = 0, signal, failOnStoreLoss = false }) {
      const cursor = new ReplyCursor();
      const subject = subjects.events(agentUid, session);
      return followSubject<StoredSessionEvent>(connection, {
        stream: STREAMS.events,
        subject,
        notifications: subjects.notifySession(agentUid, session),
        after,
        resume: (last) => resumeSequence(connection, last, failOnStoreLoss),
        // A flood of events may have removed a reply, so the replies are read too whenever the follower looks without a notification.
        read: (last, isNotified) => {
          const batches = isNotified
            ? newEvents(connection, subject, last, cursor)
            : merged(connection, { agentUid, session, after: last, from: after, cursor });
          return unfold(batches, { seq: last, skip: last === after ? skip : 0 });
        },
        signal,
      });
    },
    remove: (agentUid) => removeEvents(connection, agentUid),
  };
}

async function removeEvents(connection: JetStreamConnection, agentUid: string): Promise<void> {
  await purge(connection, STREAMS.events, `temper.events.${token(agentUid)}.*`);
  await purge(connection, STREAMS.replies, `temper.replies.${token(agentUid)}.*`);
}

async function* storedEvents(
  connection: JetStreamConnection,
  subject: string,
  after: number,
): AsyncGenerator<StoredBatch> {
  for await (const { data, seq } of readMessages(connection, STREAMS.events, subject, after + 1)) {
    const batch = parseBatch(parseJsonBytes(data), seq);
    if (batch !== undefined) yield batch;
  }
}

/** Events without the replies that the reader has handled. */
async function* newEvents(
  connection: JetStreamConnection,
  subject: string,
  after: number,
  cursor: ReplyCursor,
): AsyncGenerator<StoredBatch> {
  for await (const line of storedEvents(connection, subject, after)) if (!isEnd(line) || cursor.isNew(line)) yield line;
}

interface MergedRange {
  agentUid: string;
  session: string;
  /** Events after this sequence. */
  after: number;
  /** Replies to events after this sequence. */
  from: number;
  cursor: ReplyCursor;
}

/** Events, and replies whose event was removed. */
function merged(
  connection: JetStreamConnection,
  { agentUid, session, after, from, cursor }: MergedRange,
): AsyncGenerator<StoredBatch> {
  const replies = storedReplies(connection, subjects.replies(agentUid, session), from, cursor);
  return mergeReplies(storedEvents(connection, subjects.events(agentUid, session), after), replies, cursor);
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

function deduplicationOptions(agentUid: string, once: string | undefined): PublishOptions {
  return once === undefined ? {} : { id: deduplicationId(`${token(agentUid)}\n${once}`) };
}
