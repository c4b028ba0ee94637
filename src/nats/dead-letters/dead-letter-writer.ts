import type { Envelope } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/printable.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { parseEnvelope, storedEnvelope } from '../inbox/envelope.ts';
import { natsError } from '../connection/errors.ts';
import { publishFailure } from './failure-events.ts';
import { STREAMS, subjects, token } from '../jetstream/names.ts';
import { MAX_WRAPPED_BYTES, publish } from '../jetstream/publish.ts';
import { parseJsonBytes } from '../../lib/json.ts';
import { messageAt } from '../jetstream/stream-reader.ts';

/** A message that could not be delivered. */
export interface StoredDeadLetter {
  /** `<stream sequence>-<time it was sent, base 36>`; unique. */
  id: string;
  agentUid: string;
  /** RFC 3339: when it was dead-lettered. */
  time: string;
  deliveries: number;
  code: ErrorCode;
  /** Printable. */
  reason: string;
  /** Absent when the inbox entry was not a valid message. */
  message?: Envelope;
}

/** Called for each dead letter after it is stored, at least once. Must not throw. */
export type OnDeadLetter = (letter: StoredDeadLetter) => Promise<void>;

export interface DeadLetterInput {
  agentUid: string;
  streamSequence: number;
  deliveries: number;
  code: ErrorCode;
  reason: string;
}

/**
 * Copies a message from its inbox to the dead letters and publishes a `failed` event to its session. Idempotent, also with concurrent
 * callers: the subject is derived from the stream sequence, which is never reused. False when the message is no longer in the inbox.
 */
export async function writeDeadLetter(
  connection: JetStreamConnection,
  input: DeadLetterInput,
  onDeadLetter: OnDeadLetter = async () => undefined,
): Promise<boolean> {
  const { agentUid, streamSequence, deliveries } = input;
  const found = await messageAt(connection, STREAMS.inbox, streamSequence);
  if (found === undefined || found.subject !== subjects.inbox(agentUid)) return false;
  const message = parseEnvelope(parseJsonBytes(found.data));
  const letter: StoredDeadLetter = {
    id: `${streamSequence}-${found.time.getTime().toString(36)}`,
    agentUid,
    time: connection.clock.now().toISOString(),
    deliveries,
    code: message === undefined ? 'TEMPER_MESSAGE_INVALID' : input.code,
    reason: printable(input.reason, 500),
    ...(message === undefined ? {} : { message }),
  };
  await storeOnce(connection, letter);
  await onDeadLetter(letter);
  // Before the message leaves the inbox: after a crash here the next attempt repeats both steps, and the event is stored once.
  await publishFailure(connection, 'failed', letter);
  return true;
}

async function storeOnce(connection: JetStreamConnection, letter: StoredDeadLetter): Promise<void> {
  const subject = deadLetterSubject(letter.agentUid, letter.id);
  const { message, ...rest } = letter;
  const stored = { ...rest, ...(message === undefined ? {} : { message: storedEnvelope(message) }) };
  await publish(connection, subject, stored, {
    expectedLastSequence: 0,
    maxBytes: MAX_WRAPPED_BYTES,
  });
}

/** Deletes a dead-lettered message from the inbox. Idempotent. */
export async function removeFromInbox(connection: JetStreamConnection, streamSequence: number): Promise<void> {
  try {
    await connection.request(() => connection.manager.streams.deleteMessage(STREAMS.inbox, streamSequence, false));
  } catch (error) {
    if ((await messageAt(connection, STREAMS.inbox, streamSequence)) === undefined) return;
    throw natsError(error, 'removing a dead letter from its inbox');
  }
}

const ID = /^\d{1,16}-[0-9a-z]{1,16}$/;

/** The subject of a dead letter; for an invalid id a subject that never has a message. */
export function deadLetterSubject(agentUid: string, id: string): string {
  return `temper.deadletters.${token(agentUid)}.${ID.test(id) ? id.replace('-', '.') : 'none.none'}`;
}
