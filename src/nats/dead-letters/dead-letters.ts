import type { StoredMsg } from '@nats-io/jetstream';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import {
  type StoredDeadLetter,
  writeDeadLetter,
  writeDeadLetterWithoutBody,
  deadLetterSubject,
  removeFromInbox,
} from './dead-letter-writer.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { parseEnvelope } from '../inbox/envelope.ts';
import { natsError } from '../connection/errors.ts';
import { publishFailure } from './failure-events.ts';
import { createInboxConsumers, deliveredMessages } from '../inbox/inbox-consumers.ts';
import { CONSUMERS, STREAMS, subjects, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import {
  messageCounts,
  firstMessage,
  parseJsonBytes,
  lastMessage,
  purge,
  readMessages,
} from '../jetstream/stream-reader.ts';
import { consumeQueue } from '../jetstream/queue-consumer.ts';

export interface DeadLetters {
  /** Newest first, at most 1,000. Without a UID: of all agents. */
  list(agentUid?: string): Promise<StoredDeadLetter[]>;
  get(agentUid: string, id: string): Promise<StoredDeadLetter | undefined>;
  /**
   * Sends the message to the inbox again, with a new deadline of the original length, and deletes the dead letter. Throws
   * TEMPER_NOT_FOUND, or TEMPER_MESSAGE_INVALID when the dead letter contains no message. Safe to repeat.
   */
  retry(agentUid: string, id: string): Promise<void>;
  /** Deletes the dead letter and publishes a `failed` event to its session. Throws TEMPER_NOT_FOUND. */
  drop(agentUid: string, id: string): Promise<void>;
  count(agentUid: string): Promise<number>;
  /** Deletes all dead letters of a deleted agent. */
  remove(agentUid: string): Promise<void>;
  /** Dead-letters messages past `max_deliver` as the server's advisories arrive, until the signal is aborted. Several replicas may run it. */
  run(signal: AbortSignal, onFailure?: (error: unknown) => void): Promise<void>;
  /** Scans all inboxes for messages past `max_deliver` that produced no advisory, and dead-letters them. Returns their number. Call it once a minute. */
  reconcile(): Promise<number>;
}

const MAX_LISTED = 1_000;
const EXHAUSTED_REASON = 'delivered the maximum number of times without an acknowledgement';

/** Messages that could not be delivered, for users to inspect, retry or drop. */
export function createDeadLetters(connection: JetStreamConnection): DeadLetters {
  return {
    async list(agentUid) {
      const filter = `temper.deadletters.${agentUid === undefined ? '*' : token(agentUid)}.>`;
      let found: StoredDeadLetter[] = [];
      for await (const { data } of readMessages(connection, STREAMS.deadLetters, filter)) {
        const letter = parseDeadLetter(parseJsonBytes(data));
        if (letter !== undefined) found.push(letter);
        if (found.length >= 2 * MAX_LISTED) found = found.slice(-MAX_LISTED);
      }
      return found.slice(-MAX_LISTED).reverse();
    },
    async get(agentUid, id) {
      const found = await lastMessage(connection, STREAMS.deadLetters, deadLetterSubject(agentUid, id));
      return found === undefined ? undefined : parseDeadLetter(parseJsonBytes(found.data));
    },
    async retry(agentUid, id) {
      const found = await requireStored(connection, agentUid, id);
      const message = parseDeadLetter(parseJsonBytes(found.data))?.message;
      if (message === undefined) {
        throw new TemperError('TEMPER_MESSAGE_INVALID', `dead letter ${id} contains no message to send again; drop it`);
      }
      const now = connection.clock.now();
      const allowedMs = Date.parse(message.deadline) - Date.parse(message.time);
      const deadline = new Date(now.getTime() + allowedMs).toISOString();
      const resent = { ...message, time: now.toISOString(), deadline };
      // The id deduplicates a retry that is repeated after a crash before the next line.
      await publish(connection, subjects.inbox(agentUid), resent as unknown as Json, { id: `retry:${agentUid}:${id}` });
      await deleteAt(connection, found.seq);
    },
    async drop(agentUid, id) {
      const { seq, data } = await requireStored(connection, agentUid, id);
      const letter = parseDeadLetter(parseJsonBytes(data));
      const cause = { code: 'TEMPER_MESSAGE_DROPPED', reason: 'a user dropped it from the dead letters' } as const;
      if (letter !== undefined) await publishFailure(connection, 'dropped', { ...letter, ...cause });
      await deleteAt(connection, seq);
    },
    async count(agentUid) {
      const counts = await messageCounts(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`);
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    remove: (agentUid) => purge(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`),
    async run(signal, onFailure = () => undefined) {
      const queue = { stream: STREAMS.advisories, consumer: CONSUMERS.deadLetters, signal, onFailure };
      await consumeQueue(connection, queue, ({ data }) => handleAdvisory(connection, parseJsonBytes(data)));
    },
    reconcile: () => sweepUndelivered(connection),
  };
}

async function requireStored(connection: JetStreamConnection, agentUid: string, id: string): Promise<StoredMsg> {
  const found = await lastMessage(connection, STREAMS.deadLetters, deadLetterSubject(agentUid, id));
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `dead letter "${printable(id, 80)}" does not exist; list the dead letters to see their ids`,
  );
}

async function deleteAt(connection: JetStreamConnection, seq: number): Promise<void> {
  try {
    await connection.request(() => connection.manager.streams.deleteMessage(STREAMS.deadLetters, seq, false));
  } catch (error) {
    throw natsError(error, 'deleting a dead letter');
  }
}

/** Handles one advisory about a delivery. Ignores invalid advisories and those of other streams. */
async function handleAdvisory(connection: JetStreamConnection, advisory: Json | undefined): Promise<void> {
  if (!isJsonObject(advisory) || advisory.stream !== STREAMS.inbox) return;
  const { type, consumer: agentUid, stream_seq: streamSequence, deliveries } = advisory;
  if (typeof agentUid !== 'string' || typeof streamSequence !== 'number' || typeof deliveries !== 'number') return;
  if (typeof type !== 'string' || !type.endsWith('.terminated')) {
    await moveToDeadLetters(connection, agentUid, streamSequence, deliveries);
    return;
  }
  const subject = `temper.deadletters.${token(agentUid)}.${streamSequence}.*`;
  if ((await firstMessage(connection, STREAMS.deadLetters, subject)) !== undefined) return;
  const reason = 'terminated at the server before it was copied; its content is lost';
  await writeDeadLetterWithoutBody(connection, {
    agentUid,
    streamSequence,
    deliveries,
    code: 'TEMPER_MESSAGE_UNDELIVERED',
    reason,
  });
}

async function moveToDeadLetters(
  connection: JetStreamConnection,
  agentUid: string,
  streamSequence: number,
  deliveries: number,
): Promise<boolean> {
  const cause = { code: 'TEMPER_MESSAGE_UNDELIVERED', reason: EXHAUSTED_REASON } as const;
  if (!(await writeDeadLetter(connection, { agentUid, streamSequence, deliveries, ...cause }))) return false;
  await removeFromInbox(connection, streamSequence);
  return true;
}

async function sweepUndelivered(connection: JetStreamConnection): Promise<number> {
  const consumers = createInboxConsumers(connection);
  const counts = await messageCounts(connection, STREAMS.inbox, 'temper.inbox.*');
  let moved = 0;
  for (const agentUid of Object.keys(counts).map((subject) => subject.slice('temper.inbox.'.length))) {
    const info = await consumers.info(agentUid);
    if (info === undefined) continue;
    const { exhausted: givenUp } = await deliveredMessages(connection, agentUid, info);
    for (const streamSequence of givenUp) {
      if (await moveToDeadLetters(connection, agentUid, streamSequence, info.config.max_deliver ?? 0)) moved += 1;
    }
  }
  return moved;
}

function parseDeadLetter(value: Json | undefined): StoredDeadLetter | undefined {
  if (!isJsonObject(value)) return undefined;
  const { id, agentUid, time, deliveries, code, reason } = value;
  if (typeof id !== 'string' || typeof agentUid !== 'string' || typeof time !== 'string') return undefined;
  if (typeof deliveries !== 'number' || typeof reason !== 'string' || !isErrorCode(code)) return undefined;
  const message = parseEnvelope(value.message);
  return { id, agentUid, time, deliveries, code, reason, ...(message === undefined ? {} : { message }) };
}
