import type { Envelope } from '../bus/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { printable } from '../lib/escape.ts';
import type { Json } from '../lib/json.ts';
import type { BusConnection } from './connection.ts';
import { envelopeFrom } from './envelope.ts';
import { busFailure } from './failures.ts';
import { tellFailure } from './failed-lines.ts';
import { STREAMS, subjects, token } from './names.ts';
import { MAXIMUM_WRAPPED, publish } from './publish.ts';
import { jsonOf, messageAt } from './stored.ts';

/** A message that was given up. */
export interface BuriedMessage {
  /** `<place in the inbox>-<time it was sent>`; unique. */
  id: string;
  agentUid: string;
  /** RFC 3339: when it was given up. */
  time: string;
  deliveries: number;
  code: ErrorCode;
  /** Printable. */
  reason: string;
  /** Absent when it was no message, or gone before it could be copied. */
  message?: Envelope;
}

export interface Burial {
  agentUid: string;
  streamSequence: number;
  deliveries: number;
  code: ErrorCode;
  reason: string;
}

/**
 * Copies a message from its inbox to the dead letters and tells who follows its session. Its place there is its own for ever, so
 * whoever does it again, or at the same time, changes nothing. False when the inbox does not hold it any more.
 */
export async function bury(connection: BusConnection, burial: Burial): Promise<boolean> {
  const { agentUid, streamSequence, deliveries } = burial;
  const found = await messageAt(connection, STREAMS.inbox, streamSequence);
  if (found === undefined || found.subject !== subjects.inbox(agentUid)) return false;
  const message = envelopeFrom(jsonOf(found.data));
  const buried: BuriedMessage = {
    id: `${streamSequence}-${found.time.getTime().toString(36)}`,
    agentUid,
    time: connection.clock.now().toISOString(),
    deliveries,
    code: message === undefined ? 'TEMPER_MESSAGE_INVALID' : burial.code,
    reason: printable(burial.reason, 500),
    ...(message === undefined ? {} : { message }),
  };
  await store(connection, buried);
  // Before it leaves the inbox: whoever is cut off here does it again, and the line is told once.
  await tellFailure(connection, 'failed', buried);
  return true;
}

/** For a message that was ended before anybody could copy it: that it was, is kept. */
export async function buryLost(connection: BusConnection, burial: Burial): Promise<void> {
  const { agentUid, streamSequence, deliveries, code, reason } = burial;
  const id = `${streamSequence}-lost`;
  await store(connection, { id, agentUid, time: connection.clock.now().toISOString(), deliveries, code, reason });
}

async function store(connection: BusConnection, buried: BuriedMessage): Promise<void> {
  const subject = deadLetterSubject(buried.agentUid, buried.id);
  await publish(connection, subject, buried as unknown as Json, { after: 0, maximum: MAXIMUM_WRAPPED });
}

/** Out of the inbox, after it was buried. Gone already is no failure. */
export async function removeFromInbox(connection: BusConnection, streamSequence: number): Promise<void> {
  try {
    await connection.ask(() => connection.manager.streams.deleteMessage(STREAMS.inbox, streamSequence, false));
  } catch (error) {
    if ((await messageAt(connection, STREAMS.inbox, streamSequence)) === undefined) return;
    throw busFailure(error, 'removing a dead letter from its inbox');
  }
}

const ID = /^\d{1,16}-[0-9a-z]{1,16}$/;

/** Nothing for an id that is none. */
export function deadLetterSubject(agentUid: string, id: string): string {
  return `temper.deadletters.${token(agentUid)}.${ID.test(id) ? id.replace('-', '.') : 'none.none'}`;
}
