import type { FinishReason } from '../bus/port.ts';
import { type ErrorCode, isErrorCode } from '../lib/error-codes.ts';
import { isJsonObject, type JsonObject, parseJsonBytes } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { STREAMS, subjects } from './jetstream/names.ts';
import { publish, type PublishOptions } from './jetstream/publish.ts';
import { notify } from './notify/notifications.ts';
import { lastMessage, readMessages } from './jetstream/stream-reader.ts';

/** The end of the work on a message. */
export type SessionEnd =
  /** `format`: the gateway has checked that the text is JSON that matches `spec.returns` of the agent. */
  | { kind: 'reply'; message: string; text: string; finishReason: FinishReason; format?: 'json' }
  | { kind: 'failed'; message: string; code: ErrorCode; text: string };

export type StoredSessionEnd = SessionEnd & { seq: number };

/**
 * Publishes a reply or failure to the events of a session, and a copy with the sequence of that event to the replies: events are removed
 * when there are too many, and nothing but later replies removes a reply. Repeat the call after an error; with the same id both are
 * stored once within 30 minutes. Returns the sequence of the event. Throws TEMPER_BUS_*.
 */
export async function publishEnd(
  connection: JetStreamConnection,
  agentUid: string,
  session: string,
  line: SessionEnd,
  options: PublishOptions & { id: string },
): Promise<number> {
  const value = line as unknown as JsonObject;
  const seq = (await publish(connection, subjects.events(agentUid, session), value, options))?.seq ?? 0;
  notify(connection, subjects.notifySession(agentUid, session));
  await publish(connection, subjects.replies(agentUid, session), { ...value, event: seq }, { id: options.id });
  return seq;
}

/** How far a reader has read the replies of a session, and which of them it has handled. */
export class ReplyCursor {
  /** Sequence in the stream of replies. */
  read = 0;
  readonly #handled = new Set<number>();

  /** True at the first call for the event with this sequence. */
  isNew({ seq }: { seq: number }): boolean {
    if (this.#handled.has(seq)) return false;
    this.#handled.add(seq);
    return true;
  }
}

interface StoredReply {
  line: StoredSessionEnd;
  /** Sequence in the stream of replies. */
  at: number;
}

/** Replies after the event sequence `after`, in the order in which they were stored. */
export async function* storedReplies(
  connection: JetStreamConnection,
  subject: string,
  after: number,
  cursor: ReplyCursor,
): AsyncGenerator<StoredReply> {
  for await (const { data, seq } of readMessages(connection, STREAMS.replies, subject, cursor.read + 1)) {
    const value = parseJsonBytes(data);
    const event = isJsonObject(value) ? value['event'] : undefined;
    const line = isJsonObject(value) ? parseEnd(value) : undefined;
    if (line !== undefined && typeof event === 'number' && event > after)
      yield { line: { ...line, seq: event }, at: seq };
  }
}

/** The event sequence of the last reply of a session; undefined without a reply. */
export async function lastReply(
  connection: JetStreamConnection,
  agentUid: string,
  session: string,
): Promise<number | undefined> {
  const found = await lastMessage(connection, STREAMS.replies, subjects.replies(agentUid, session));
  const value = found === undefined ? undefined : parseJsonBytes(found.data);
  const event = isJsonObject(value) ? value['event'] : undefined;
  return typeof event === 'number' ? event : undefined;
}

/**
 * Merges events and replies by sequence. A reply that is among the events comes once; one whose event was removed comes at its place,
 * or as soon as it is known. Moves the cursor past each reply once it was handled.
 */
export async function* mergeReplies<E extends { seq: number; kind: string }>(
  events: AsyncIterable<E>,
  replies: AsyncGenerator<StoredReply>,
  cursor: ReplyCursor,
): AsyncGenerator<E | StoredSessionEnd> {
  let next = await replies.next();
  try {
    for await (const event of events) {
      for (; next.done !== true && next.value.line.seq < event.seq; next = await replies.next()) {
        if (cursor.isNew(next.value.line)) yield next.value.line;
        cursor.read = next.value.at;
      }
      if (!isEnd(event) || cursor.isNew(event)) yield event;
    }
    for (; next.done !== true; next = await replies.next()) {
      if (cursor.isNew(next.value.line)) yield next.value.line;
      cursor.read = next.value.at;
    }
  } finally {
    await replies.return(undefined);
  }
}

export function isEnd({ kind }: { kind: string }): boolean {
  return kind === 'reply' || kind === 'failed';
}

export function parseEnd({ kind, message, text, finishReason, format, code }: JsonObject): SessionEnd | undefined {
  if (typeof message !== 'string' || typeof text !== 'string') return undefined;
  if (kind === 'reply' && (finishReason === 'complete' || finishReason === 'truncated' || finishReason === 'refusal')) {
    return { kind, message, text, finishReason, ...(format === 'json' ? { format } : {}) };
  }
  if (kind === 'failed' && isErrorCode(code)) {
    return { kind, message, code: code as ErrorCode, text };
  }
  return undefined;
}

/** The sequence of the last reply of a session in the stream of replies; 0 without a reply. */
export async function replyPosition(
  connection: JetStreamConnection,
  agentUid: string,
  session: string,
): Promise<number> {
  return (await lastMessage(connection, STREAMS.replies, subjects.replies(agentUid, session)))?.seq ?? 0;
}

/** The end of the work on a message, of the replies after this position, as soon as a follower has it. */
export async function findEnd(
  connection: JetStreamConnection,
  agentUid: string,
  of: { session: string; message: string; after: number },
): Promise<SessionEnd | undefined> {
  const subject = subjects.replies(agentUid, of.session);
  for await (const { data } of readMessages(connection, STREAMS.replies, subject, of.after + 1)) {
    const end = endIn(data);
    if (end?.message === of.message) return end;
  }
  // A reply is stored after its event, which is the last one of its session until then.
  const last = await lastMessage(connection, STREAMS.events, subjects.events(agentUid, of.session));
  const end = last === undefined ? undefined : endIn(last.data);
  return end?.message === of.message ? end : undefined;
}

function endIn(data: Uint8Array): SessionEnd | undefined {
  const value = parseJsonBytes(data);
  return isJsonObject(value) ? parseEnd(value) : undefined;
}
