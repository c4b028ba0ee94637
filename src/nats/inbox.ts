import type { Envelope, Receipt } from '../bus/port.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { sha256 } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import { isTemperError } from '../lib/errors.ts';
import { bury } from './burial.ts';
import type { BusConnection } from './connection.ts';
import { type DeliveryCoordinates, settle } from './delivery.ts';
import { envelopeFrom } from './envelope.ts';
import { createConsumers, deliveredAndThere, type DeliveryRules, type InboxConsumers } from './inbox-consumers.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, subjects, token } from './names.ts';
import { publish } from './publish.ts';
import { pullOne } from './pull.ts';
import { jsonOf, lastMessage, purge } from './stored.ts';

const NANOS = 1_000_000;

/** Who sends, and the key under which sending twice is sending once. */
export interface Sender {
  /** Uid of the agent, or another identity made of `[A-Za-z0-9_-]`; never text somebody else chose. */
  uid: string;
  /** Any text. */
  key: string;
}

/** A message before it has an id. Without `root` it begins a chain and is its own root. */
export type NewMessage = Omit<Envelope, 'id' | 'root'> & { root?: string };

export interface InboxDelivery {
  message: Envelope;
  coordinates: DeliveryCoordinates;
  /** Without `working` it is delivered again after so long. */
  leaseMilliseconds: number;
}

export interface Waiting {
  /** Not delivered yet. */
  waiting: number;
  /** 0 or 1. */
  inFlight: number;
}

/** A delivery that has not ended. */
interface InFlight {
  streamSequence: number;
  consumerSequence: number;
}

/** Inboxes of all agents. Any process may settle what any other fetched. */
export interface Inbox {
  /** Throws TEMPER_BUS_FULL when the inbox takes no more, TEMPER_BUS_TOO_LARGE beyond 200 KiB. */
  publish(agentUid: string, sender: Sender, message: NewMessage): Promise<Receipt>;
  /** The next message, or nothing when none came in time or the signal was aborted. One is in flight at a time. */
  fetchNext(agentUid: string, waitMilliseconds: number, signal: AbortSignal): Promise<InboxDelivery | undefined>;
  /** Done: it will not come again. Resolves when the server has confirmed. The same again is no error. */
  ack(at: DeliveryCoordinates): Promise<void>;
  /** Again, after a while. */
  retry(at: DeliveryCoordinates, afterMilliseconds: number): Promise<void>;
  /** Never again: to the dead letters. */
  reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void>;
  /** Still being worked on: the lease begins anew. */
  working(at: DeliveryCoordinates): Promise<void>;
  /** What is in flight, by its last delivery. */
  inFlight(agentUid: string): Promise<InFlight | undefined>;
  /**
   * Gives back what is in flight at once, for a pod that is gone. False when nothing was. With `only` that one delivery, and false too when
   * it ended or was delivered again since.
   */
  release(agentUid: string, only?: InFlight): Promise<boolean>;
  waiting(agentUid: string): Promise<Waiting>;
  /** For a removed agent: its consumer and its messages. */
  remove(agentUid: string): Promise<void>;
  /** Uids of all agents that have a consumer. */
  agents(): Promise<string[]>;
}

/** The id a message gets: the same sender and key give the same one, so a repeated call needs no record of the first. */
export function messageId({ uid, key }: Sender): string {
  return `msg-${sha256(`${token(uid)}\n${key}`).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/**
 * One durable consumer an agent, one message in flight. A message is delivered at most five times, then it is a dead letter
 * (`createDeadLetters(…).run` buries it). What was acknowledged is noted in a bucket as well: the server forgets the ids of
 * messages that are gone when it restarts, so a message sent again just then would be stored, and worked on, a second time.
 */
export function createInbox(connection: BusConnection, rules: Partial<DeliveryRules> = {}): Inbox {
  return new StreamInbox(connection, createConsumers(connection, rules));
}

class StreamInbox implements Inbox {
  readonly #connection: BusConnection;
  readonly #consumers: InboxConsumers;

  constructor(connection: BusConnection, consumers: InboxConsumers) {
    this.#connection = connection;
    this.#consumers = consumers;
  }

  async publish(agentUid: string, sender: Sender, message: NewMessage): Promise<Receipt> {
    const id = messageId(sender);
    const { from, to, session, text, root = id, depth, deadline, time } = message;
    const envelope: Envelope = { id, from, to, session, text, root, depth, deadline, time };
    const subject = subjects.inbox(agentUid);
    const options = { id: `${sender.uid}:${id}`, traceparent: message.traceparent };
    const stored = await publish(this.#connection, subject, envelope as unknown as Json, options);
    return { id, duplicate: stored?.duplicate === true };
  }

  async fetchNext(agentUid: string, waitMilliseconds: number, signal: AbortSignal): Promise<InboxDelivery | undefined> {
    const { clock } = this.#connection;
    const until = clock.monotonic() + waitMilliseconds;
    const ensure = (): Promise<void> => this.#consumers.ensure(agentUid);
    for (;;) {
      const left = Math.max(1, until - clock.monotonic());
      const pulled = await pullOne(this.#connection, STREAMS.inbox, token(agentUid), { ensure, left, signal });
      if (pulled === undefined) return undefined;
      const { streamSequence, consumerSequence, deliveries } = pulled;
      const message = envelopeFrom(jsonOf(pulled.data), pulled.traceparent);
      const coordinates = { agentUid, message: message?.id ?? '', streamSequence, consumerSequence, deliveries };
      if (message !== undefined && (await this.#isWorth(message, coordinates))) {
        return { message, coordinates, leaseMilliseconds: this.#consumers.leaseMilliseconds(deliveries) };
      }
      if (message === undefined) {
        await this.reject(coordinates, 'TEMPER_MESSAGE_INVALID', 'what lay in the inbox is no message');
      }
    }
  }

  async ack(at: DeliveryCoordinates): Promise<void> {
    await publish(this.#connection, settledSubject(at), at.streamSequence);
    try {
      await this.#settle(at, '+ACK');
    } catch (error) {
      // A server that forgot it delivered this will do so again, and then the note ends it.
      if (!isTemperError(error, 'TEMPER_NOT_FOUND')) throw error;
    }
  }

  async retry(at: DeliveryCoordinates, afterMilliseconds: number): Promise<void> {
    if (afterMilliseconds <= 0) return this.#settle(at, '-NAK');
    // The server counts a delay from the first lease, and lets a message rest for the lease of its own delivery.
    const longer = this.#consumers.leaseMilliseconds(at.deliveries) - this.#consumers.leaseMilliseconds(1);
    const delay = Math.round((afterMilliseconds - longer) * NANOS);
    await this.#settle(at, `-NAK ${JSON.stringify({ delay })}`);
  }

  async reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void> {
    const { agentUid, streamSequence, deliveries } = at;
    // Copied first: ending it removes it.
    await bury(this.#connection, { agentUid, streamSequence, deliveries, code, reason });
    await this.#settle(at, '+TERM');
  }

  working(at: DeliveryCoordinates): Promise<void> {
    return this.#settle(at, '+WPI');
  }

  async inFlight(agentUid: string): Promise<InFlight | undefined> {
    const info = await this.#consumers.info(agentUid);
    if (info === undefined || info.num_ack_pending === 0) return undefined;
    const { inFlight } = await deliveredAndThere(this.#connection, agentUid, info);
    if (inFlight === undefined) return undefined;
    return { streamSequence: inFlight, consumerSequence: info.delivered.consumer_seq };
  }

  async release(agentUid: string, only?: InFlight): Promise<boolean> {
    const held = await this.inFlight(agentUid);
    if (held === undefined) return false;
    if (only !== undefined && only.consumerSequence !== held.consumerSequence) return false;
    await this.#settle({ agentUid, message: '', deliveries: 1, ...held }, '-NAK');
    return true;
  }

  async waiting(agentUid: string): Promise<Waiting> {
    const info = await this.#consumers.info(agentUid);
    if (info !== undefined) return { waiting: info.num_pending, inFlight: info.num_ack_pending };
    return { waiting: await this.#consumers.unclaimed(agentUid), inFlight: 0 };
  }

  async remove(agentUid: string): Promise<void> {
    await this.#consumers.remove(agentUid);
    await purge(this.#connection, STREAMS.inbox, subjects.inbox(agentUid));
  }

  agents(): Promise<string[]> {
    return this.#consumers.list();
  }

  /** Ends what was worked on before, and what comes too late. */
  async #isWorth(message: Envelope, at: DeliveryCoordinates): Promise<boolean> {
    const settled = await lastMessage(this.#connection, bucketStream(BUCKETS.settled), settledSubject(at));
    if (settled !== undefined) {
      await this.#settle(at, '+ACK');
      return false;
    }
    if (Date.parse(message.deadline) > this.#connection.clock.now().getTime()) return true;
    await this.reject(at, 'TEMPER_TIMEOUT', `the deadline of its chain, ${message.deadline}, was over`);
    return false;
  }

  #settle(
    { agentUid, streamSequence, consumerSequence, deliveries }: DeliveryCoordinates,
    verb: string,
  ): Promise<void> {
    const place = { stream: STREAMS.inbox, consumer: agentUid, streamSequence, consumerSequence, deliveries };
    return settle(this.#connection, place, verb);
  }
}

function settledSubject({ agentUid, message }: DeliveryCoordinates): string {
  return bucketSubject(BUCKETS.settled, `${token(agentUid)}.${token(message)}`);
}
