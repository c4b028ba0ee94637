import type { StoredMsg } from '@nats-io/jetstream';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import { type StoredDeadLetter, deadLetterSubject } from './dead-letter-writer.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { parseEnvelope, storedEnvelope } from '../inbox/envelope.ts';
import { natsError } from '../connection/errors.ts';
import { publishFailure } from './failure-events.ts';
import { notify } from '../notify/notifications.ts';
import { STREAMS, subjects, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { countMessages, lastMessage, purge, readMessages } from '../jetstream/stream-reader.ts';

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
}

const MAX_LISTED = 1_000;

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
      await publish(connection, subjects.inbox(agentUid), storedEnvelope(resent), { id: `retry:${agentUid}:${id}` });
      notify(connection, subjects.notifyInbox(agentUid));
      await deleteAt(connection, found.seq);
    },
    async drop(agentUid, id) {
      const { seq, data } = await requireStored(connection, agentUid, id);
      const letter = parseDeadLetter(parseJsonBytes(data));
      const cause = { code: 'TEMPER_MESSAGE_DROPPED', reason: 'a user dropped it from the dead letters' } as const;
      if (letter !== undefined) await publishFailure(connection, 'dropped', { ...letter, ...cause });
      await deleteAt(connection, seq);
    },
    count: (agentUid) => countMessages(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`),
    remove: (agentUid) => purge(connection, STREAMS.deadLetters, `temper.deadletters.${token(agentUid)}.>`),
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

function parseDeadLetter(value: Json | undefined): StoredDeadLetter | undefined {
  if (!isJsonObject(value)) return undefined;
  const { id, agentUid, time, deliveries, code, reason } = value;
  if (typeof id !== 'string' || typeof agentUid !== 'string' || typeof time !== 'string') return undefined;
  if (typeof deliveries !== 'number' || typeof reason !== 'string' || !isErrorCode(code)) return undefined;
  const message = parseEnvelope(value.message);
  return { id, agentUid, time, deliveries, code, reason, ...(message === undefined ? {} : { message }) };
}
