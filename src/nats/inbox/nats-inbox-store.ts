import type { StoredMsg } from '@nats-io/jetstream';
import { isErrorCode } from '../../lib/error-codes.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonBytes } from '../../lib/json.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { type OnDeadLetter, removeFromInbox, writeDeadLetter } from '../dead-letters/dead-letter-writer.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, subjects, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import {
  firstMessage,
  firstMessages,
  lastMessage,
  lastMessages,
  messageAt,
  readMessages,
} from '../jetstream/stream-reader.ts';
import { type CurrentDelivery, type DeliveryState, EMPTY_STATE, type OpenDelivery } from './delivery-state.ts';
import type { EndedMessage, InboxMessage, InboxStore } from './inbox-store.ts';

/** The inboxes in JetStream: messages in a stream, delivery states and ends of messages in buckets. */
export function createNatsInboxStore(connection: JetStreamConnection, onDeadLetter?: OnDeadLetter): InboxStore {
  const endedSubject = (agentUid: string, message: string): string =>
    bucketSubject(BUCKETS.acked, `${token(agentUid)}.${token(message)}`);
  return {
    async readState(agentUid) {
      const found = await lastMessage(connection, bucketStream(BUCKETS.deliveries), stateSubject(agentUid));
      if (found === undefined) return { state: EMPTY_STATE, revision: 0 };
      return { state: parseDeliveryState(parseJsonBytes(found.data)), revision: found.seq };
    },
    async writeState(agentUid, state, revision) {
      const options = { expectedLastSequence: revision };
      return (await publish(connection, stateSubject(agentUid), storedState(state), options))?.seq;
    },
    async message(agentUid, sequence) {
      const found = await messageAt(connection, STREAMS.inbox, sequence);
      return found?.subject === subjects.inbox(agentUid) ? inboxMessage(found) : undefined;
    },
    async *messages(agentUid, fromSequence, isExpected = true) {
      const subject = subjects.inbox(agentUid);
      const first = await oldestMessages(connection, subject, fromSequence, isExpected);
      for (const found of first.messages) yield inboxMessage(found);
      const last = first.messages.at(-1);
      if (last === undefined || first.isAll) return;
      for await (const found of readMessages(connection, STREAMS.inbox, subject, last.seq + 1))
        yield inboxMessage(found);
    },
    deleteMessage: (_agentUid, sequence) => removeFromInbox(connection, sequence),
    async readEnded(agentUid, message) {
      const found = await lastMessage(connection, bucketStream(BUCKETS.acked), endedSubject(agentUid, message));
      return found === undefined ? undefined : parseEnded(parseJsonBytes(found.data));
    },
    async writeEnded(agentUid, message, ended) {
      await publish(connection, endedSubject(agentUid, message), ended as unknown as Json);
    },
    writeDeadLetter: (input) => writeDeadLetter(connection, input, onDeadLetter),
  };
}

/** The delivery state of an agent. */
export interface StoredDeliveries {
  readonly agentUid: string;
  readonly state: DeliveryState;
  /** Epoch milliseconds of the last write. */
  readonly writtenAt: number;
}

/** The server answers at most 1,024 subjects at once. */
const READ_AT_ONCE = 500;

/** The delivery states of these agents, of those that have one. */
export async function readDeliveries(
  connection: JetStreamConnection,
  agentUids: readonly string[],
): Promise<StoredDeliveries[]> {
  const found: StoredDeliveries[] = [];
  for (let start = 0; start < agentUids.length; start += READ_AT_ONCE) {
    const filters = agentUids.slice(start, start + READ_AT_ONCE).map(stateSubject);
    for (const { subject, data, time } of (await lastMessages(connection, bucketStream(BUCKETS.deliveries), filters)) ??
      [])
      found.push({
        agentUid: subject.slice(subject.lastIndexOf('.') + 1),
        state: parseDeliveryState(parseJsonBytes(data)),
        writtenAt: time.getTime(),
      });
  }
  return found;
}

/** The subject of the delivery state of an agent. */
export function stateSubject(agentUid: string): string {
  return bucketSubject(BUCKETS.deliveries, token(agentUid));
}

/**
 * Any replica of the stream may answer; one that lags shows no message where the leader has one, so the leader is asked then, and at once
 * when no message is expected.
 */
async function oldestMessages(
  connection: JetStreamConnection,
  subject: string,
  from: number,
  isExpected: boolean,
): Promise<{ messages: StoredMsg[]; isAll: boolean }> {
  const messages = isExpected ? await firstMessages(connection, STREAMS.inbox, subject, from) : [];
  if (messages.length > 0) return { messages, isAll: messages.at(-1)?.pending === 0 };
  const first = await firstMessage(connection, STREAMS.inbox, subject, from);
  // The leader does not say how many follow.
  return { messages: first === undefined ? [] : [first], isAll: false };
}

function inboxMessage({ seq, data, header }: StoredMsg): InboxMessage {
  const traceparent = header?.get(TRACEPARENT);
  return { sequence: seq, data, ...(traceparent === undefined || traceparent === '' ? {} : { traceparent }) };
}

/** Gateways and the operator write states; what is not valid is left out, so its message is delivered again. */
function parseDeliveryState(value: Json | undefined): DeliveryState {
  if (!isJsonObject(value)) return EMPTY_STATE;
  const waiting = Array.isArray(value.waiting) ? value.waiting.flatMap((one) => parseDelivery(one) ?? []) : [];
  const others = Array.isArray(value.others) ? value.others : [];
  return { current: [value.current, ...others].flatMap((one) => parseCurrent(one) ?? []), waiting };
}

/** Gateways of an older release know one delivery in flight, `current`. */
function storedState({ current: [first, ...others], waiting }: DeliveryState): Json {
  const stored = {
    ...(first === undefined ? {} : { current: first }),
    ...(others.length === 0 ? {} : { others }),
    waiting,
  };
  return stored as unknown as Json;
}

function parseCurrent(value: Json | undefined): CurrentDelivery | undefined {
  const delivery = parseDelivery(value);
  if (delivery === undefined || !isJsonObject(value) || !isJsonObject(value.rejection)) return delivery;
  const { code, reason } = value.rejection;
  return isErrorCode(code) && typeof reason === 'string' ? { ...delivery, rejection: { code, reason } } : delivery;
}

function parseDelivery(value: Json | undefined): OpenDelivery | undefined {
  if (!isJsonObject(value)) return undefined;
  const { session, sequence, message, deliveries, until, cause } = value;
  if (typeof session !== 'string' || typeof message !== 'string') return undefined;
  if (typeof sequence !== 'number' || typeof deliveries !== 'number' || typeof until !== 'number') return undefined;
  const isCause = cause === 'retry' || cause === 'podDeleted' || cause === 'parked';
  return { session, sequence, message, deliveries, until, ...(isCause ? { cause } : {}), ...parseParked(value) };
}

function parseParked({ parkedAt, parkedMs, uncounted }: JsonObject): Partial<OpenDelivery> {
  return {
    ...(typeof parkedAt === 'number' ? { parkedAt } : {}),
    ...(typeof parkedMs === 'number' ? { parkedMs } : {}),
    ...(typeof uncounted === 'number' ? { uncounted } : {}),
  };
}

/** Gateways of an older release wrote only the sequence. */
function parseEnded(value: Json | undefined): EndedMessage | undefined {
  if (typeof value === 'number') return { sequence: value, deliveries: 0, outcome: 'acked' };
  if (!isJsonObject(value)) return undefined;
  const { sequence, deliveries, outcome } = value;
  if (typeof sequence !== 'number' || typeof deliveries !== 'number') return undefined;
  return outcome === 'acked' || outcome === 'rejected' ? { sequence, deliveries, outcome } : undefined;
}
