import { deliveryLost } from '../../bus/delivery-end.ts';
import type { Envelope, Receipt } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { sha256 } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { isTemperError } from '../../lib/errors.ts';
import { writeDeadLetter } from '../dead-letters/dead-letter-writer.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { type DeliveryCoordinates, sendAck } from '../jetstream/delivery.ts';
import { parseEnvelope } from './envelope.ts';
import { createInboxConsumers, deliveredMessages, type DeliveryRules, type InboxConsumers } from './inbox-consumers.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, subjects, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { pullMessage } from '../jetstream/pull-consumer.ts';
import { parseJsonBytes, lastMessage, purge } from '../jetstream/stream-reader.ts';

const NANOS_PER_MS = 1_000_000;

/** The sender of a message and its idempotency key. */
export interface SenderIdentity {
  /** UID of the agent, or another identity of `[A-Za-z0-9_-]`. Chosen by the system, never by a client. */
  uid: string;
  /** Idempotency key: any text. */
  key: string;
}

/** A message before it has an id. Without `root` it starts a chain and is its own root. */
export type NewMessage = Omit<Envelope, 'id' | 'root'> & { root?: string };

export interface InboxDelivery {
  message: Envelope;
  coordinates: DeliveryCoordinates;
  /** The message is redelivered after this time unless the receiver calls `working`. */
  ackWaitMs: number;
}

export interface InboxDepth {
  /** Messages not delivered yet. */
  pending: number;
  /** Messages delivered and not acknowledged: 0 or 1. */
  inFlight: number;
}

/** A delivery that is not acknowledged yet. */
interface InFlight {
  streamSequence: number;
  consumerSequence: number;
}

/** Inboxes of all agents. Any process may acknowledge a delivery that another process fetched. Methods throw TEMPER_BUS_* on connection errors. */
export interface NatsInbox {
  /**
   * Idempotent per sender key for 30 minutes: a repeated call returns the first message's id with `duplicate`. Throws TEMPER_BUS_FULL
   * when the inbox is full, TEMPER_BUS_TOO_LARGE above 200 KiB.
   */
  publish(agentUid: string, sender: SenderIdentity, message: NewMessage): Promise<Receipt>;
  /** The next message; undefined after the timeout or when the signal is aborted. One message per agent is in flight at a time. */
  fetchNext(agentUid: string, waitMs: number, signal: AbortSignal): Promise<InboxDelivery | undefined>;
  /**
   * Marks the message as processed; it is not redelivered. Resolves when the server has confirmed. Idempotent. Throws TEMPER_DELIVERY_LOST
   * when the message was redelivered since and is not acknowledged yet.
   */
  ack(at: DeliveryCoordinates): Promise<void>;
  /**
   * Redelivers the message after the delay. Throws TEMPER_NOT_FOUND for a delivery that the server does not know, and, like `reject` and
   * `working`, TEMPER_DELIVERY_LOST for one after which the server has delivered again: the later delivery belongs to another receiver.
   */
  retry(at: DeliveryCoordinates, delayMs: number): Promise<void>;
  /** Moves the message to the dead letters. Throws TEMPER_NOT_FOUND for a delivery that the server does not know. */
  reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void>;
  /** Reports progress and restarts the ack wait. Throws TEMPER_NOT_FOUND for a delivery that the server does not know. */
  working(at: DeliveryCoordinates): Promise<void>;
  /** The message in flight, identified by its last delivery; undefined when there is none. */
  inFlight(agentUid: string): Promise<InFlight | undefined>;
  /**
   * Redelivers the message in flight at once, after its pod was deleted. False when no message is in flight. With `only`, affects that
   * delivery alone: false when it was acknowledged or redelivered since.
   */
  redeliver(agentUid: string, only?: InFlight): Promise<boolean>;
  depth(agentUid: string): Promise<InboxDepth>;
  /** Deletes the consumer and the messages of a deleted agent. Idempotent. */
  remove(agentUid: string): Promise<void>;
  /** UIDs of all agents that have a consumer. */
  agents(): Promise<string[]>;
}

/** The id of a message, derived from sender and key: a repeated call gets the same id without a record of the first call. */
export function messageId({ uid, key }: SenderIdentity): string {
  return `msg-${sha256(`${token(uid)}\n${key}`).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/**
 * One durable consumer and one message in flight per agent. A message is delivered at most five times and then becomes a dead letter
 * (written by `createDeadLetters(…).run`). The ids of acknowledged messages are stored in a bucket too: a restarting server forgets
 * the ids of deleted messages, so a message sent again at that moment would be stored and processed a second time.
 */
export function createNatsInbox(connection: JetStreamConnection, rules: Partial<DeliveryRules> = {}): NatsInbox {
  return new JetStreamInbox(connection, createInboxConsumers(connection, rules));
}

class JetStreamInbox implements NatsInbox {
  readonly #connection: JetStreamConnection;
  readonly #consumers: InboxConsumers;

  constructor(connection: JetStreamConnection, consumers: InboxConsumers) {
    this.#connection = connection;
    this.#consumers = consumers;
  }

  async publish(agentUid: string, sender: SenderIdentity, message: NewMessage): Promise<Receipt> {
    const id = messageId(sender);
    const { from, to, session, text, root = id, depth, deadline, time } = message;
    const envelope: Envelope = { id, from, to, session, text, root, depth, deadline, time };
    const subject = subjects.inbox(agentUid);
    const options = { id: `${sender.uid}:${id}`, traceparent: message.traceparent };
    const stored = await publish(this.#connection, subject, envelope as unknown as Json, options);
    return { id, duplicate: stored?.duplicate === true };
  }

  async fetchNext(agentUid: string, waitMs: number, signal: AbortSignal): Promise<InboxDelivery | undefined> {
    const { clock } = this.#connection;
    const deadline = clock.monotonic() + waitMs;
    const ensure = (): Promise<void> => this.#consumers.ensure(agentUid);
    for (;;) {
      const timeoutMs = Math.max(1, deadline - clock.monotonic());
      const pulled = await pullMessage(this.#connection, STREAMS.inbox, token(agentUid), {
        ensureConsumer: ensure,
        waitMs: timeoutMs,
        signal,
      });
      if (pulled === undefined) return undefined;
      const { streamSequence, consumerSequence, deliveries } = pulled;
      const message = parseEnvelope(parseJsonBytes(pulled.data), pulled.traceparent);
      const coordinates = { agentUid, message: message?.id ?? '', streamSequence, consumerSequence, deliveries };
      if (message !== undefined && (await this.#isDeliverable(message, coordinates))) {
        return { message, coordinates, ackWaitMs: this.#consumers.ackWaitMs(deliveries) };
      }
      if (message === undefined) {
        await this.reject(coordinates, 'TEMPER_MESSAGE_INVALID', 'inbox entry is not a valid message');
      }
    }
  }

  async ack(at: DeliveryCoordinates): Promise<void> {
    if (await this.#isSuperseded(at)) {
      // A repeated call, after which the next message was delivered.
      if (await this.#isAcked(at)) return;
      throw deliveryLost();
    }
    await publish(this.#connection, ackedSubject(at), at.streamSequence);
    try {
      await this.#sendAck(at, '+ACK');
    } catch (error) {
      // A server that lost the delivery redelivers the message; the id in the bucket then ends it.
      if (!isTemperError(error, 'TEMPER_NOT_FOUND')) throw error;
    }
  }

  async retry(at: DeliveryCoordinates, delayMs: number): Promise<void> {
    await this.#assertCurrent(at);
    if (delayMs <= 0) return this.#sendAck(at, '-NAK');
    // With `backoff` the server adds the delay to the difference between this delivery's ack wait and the first one's.
    const extraMs = this.#consumers.ackWaitMs(at.deliveries) - this.#consumers.ackWaitMs(1);
    const delay = Math.round((delayMs - extraMs) * NANOS_PER_MS);
    await this.#sendAck(at, `-NAK ${JSON.stringify({ delay })}`);
  }

  async reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void> {
    await this.#assertCurrent(at);
    const { agentUid, streamSequence, deliveries } = at;
    // Copied first: `+TERM` deletes the message from a work-queue stream.
    await writeDeadLetter(this.#connection, { agentUid, streamSequence, deliveries, code, reason });
    await this.#sendAck(at, '+TERM');
  }

  async working(at: DeliveryCoordinates): Promise<void> {
    await this.#assertCurrent(at);
    await this.#sendAck(at, '+WPI');
  }

  async inFlight(agentUid: string): Promise<InFlight | undefined> {
    const info = await this.#consumers.info(agentUid);
    if (info === undefined || info.num_ack_pending === 0) return undefined;
    const { inFlight } = await deliveredMessages(this.#connection, agentUid, info);
    if (inFlight === undefined) return undefined;
    return { streamSequence: inFlight, consumerSequence: info.delivered.consumer_seq };
  }

  async redeliver(agentUid: string, only?: InFlight): Promise<boolean> {
    const current = await this.inFlight(agentUid);
    if (current === undefined) return false;
    if (only !== undefined && only.consumerSequence !== current.consumerSequence) return false;
    await this.#sendAck({ agentUid, message: '', deliveries: 1, ...current }, '-NAK');
    return true;
  }

  async depth(agentUid: string): Promise<InboxDepth> {
    const info = await this.#consumers.info(agentUid);
    if (info !== undefined) return { pending: info.num_pending, inFlight: info.num_ack_pending };
    return { pending: await this.#consumers.countWithoutConsumer(agentUid), inFlight: 0 };
  }

  async remove(agentUid: string): Promise<void> {
    await this.#consumers.remove(agentUid);
    await purge(this.#connection, STREAMS.inbox, subjects.inbox(agentUid));
  }

  agents(): Promise<string[]> {
    return this.#consumers.list();
  }

  /** False for a message that was processed before, which is acknowledged, or whose deadline has passed, which is dead-lettered. */
  async #isDeliverable(message: Envelope, at: DeliveryCoordinates): Promise<boolean> {
    if (await this.#isAcked(at)) {
      await this.#sendAck(at, '+ACK');
      return false;
    }
    if (Date.parse(message.deadline) > this.#connection.clock.now().getTime()) return true;
    await this.reject(at, 'TEMPER_TIMEOUT', `the deadline of its chain, ${message.deadline}, has passed`);
    return false;
  }

  async #isAcked(at: DeliveryCoordinates): Promise<boolean> {
    return (await lastMessage(this.#connection, bucketStream(BUCKETS.acked), ackedSubject(at))) !== undefined;
  }

  /** The consumer has delivered again since: the server would apply an acknowledgement of this delivery to the later one. */
  async #isSuperseded({ agentUid, consumerSequence }: DeliveryCoordinates): Promise<boolean> {
    const info = await this.#consumers.info(agentUid);
    return info !== undefined && info.delivered.consumer_seq > consumerSequence;
  }

  async #assertCurrent(at: DeliveryCoordinates): Promise<void> {
    if (await this.#isSuperseded(at)) throw deliveryLost();
  }

  #sendAck(
    { agentUid, streamSequence, consumerSequence, deliveries }: DeliveryCoordinates,
    verb: string,
  ): Promise<void> {
    const delivery = { stream: STREAMS.inbox, consumer: agentUid, streamSequence, consumerSequence, deliveries };
    return sendAck(this.#connection, delivery, verb);
  }
}

function ackedSubject({ agentUid, message }: DeliveryCoordinates): string {
  return bucketSubject(BUCKETS.acked, `${token(agentUid)}.${token(message)}`);
}
