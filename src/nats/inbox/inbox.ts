import type { Envelope, Receipt } from '../../bus/port.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { sha256 } from '../../lib/canonical.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { Reconnects } from '../connection/reconnects.ts';
import type { OnDeadLetter } from '../dead-letters/dead-letter-writer.ts';
import { NotificationListener, notify } from '../notify/notifications.ts';
import { BUCKETS, bucketStream, STREAMS, subjects, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import { messageCounts, purge } from '../jetstream/stream-reader.ts';
import {
  type DeliveryCoordinates,
  type DeliveryRules,
  InboxDeliveries,
  type InboxDelivery,
  type StoreReply,
  type TakeResult,
} from './inbox-deliveries.ts';
import type { Rejection } from './delivery-state.ts';
import { storedEnvelope, writtenByGateways } from './envelope.ts';
import { createNatsInboxStore, stateSubject } from './nats-inbox-store.ts';

export type { InboxDelivery, StoreReply };

/** The sender of a message and its idempotency key. */
export interface SenderIdentity {
  /** UID of the agent, or another identity of `[A-Za-z0-9_-]`. Chosen by the system, never by a client. */
  uid: string;
  /** Idempotency key: any text. */
  key: string;
}

/** A message before it has an id. Without `root` it starts a chain and is its own root. */
export type NewMessage = Omit<Envelope, 'id' | 'root'> & { root?: string };

interface StoredReceipt extends Receipt {
  /** Of the message in the stream of inboxes; of a duplicate that of the first message. */
  sequence: number;
}

export interface InboxDepth {
  /** Messages that are not in flight, without those that wait for an approval. */
  pending: number;
  /** Messages delivered and not acknowledged. */
  inFlight: number;
}

/** A delivery that is not acknowledged yet. */
interface InFlight {
  streamSequence: number;
  deliveries: number;
}

/** Inboxes of all agents. Any process may acknowledge a delivery that another process fetched. Methods throw TEMPER_BUS_* on connection errors. */
export interface NatsInbox {
  /**
   * Idempotent per sender key for 30 minutes: a repeated call returns the first message's id with `duplicate`. Throws TEMPER_BUS_FULL
   * when the inbox is full, TEMPER_BUS_TOO_LARGE above 200 KiB.
   */
  publish(agentUid: string, sender: SenderIdentity, message: NewMessage): Promise<StoredReceipt>;
  /**
   * The next message; undefined after the timeout or when the signal is aborted. Throws TEMPER_BUS_UNAVAILABLE when the connection is
   * closed and will not reconnect. At most `limit` messages of the agent are in flight (default 1), and one per session; a session whose
   * message is in flight or waits for its redelivery does not delay other sessions.
   */
  fetchNext(agentUid: string, waitMs: number, signal: AbortSignal, limit?: number): Promise<InboxDelivery | undefined>;
  /**
   * Marks the message as processed; it is not redelivered. Resolves when the server has confirmed. Idempotent. `storeReply` takes effect
   * before, and only for the latest delivery of the message. Throws TEMPER_DELIVERY_LOST when the message was redelivered since, TEMPER_NOT_FOUND
   * when no delivery of it is open.
   */
  ack(at: DeliveryCoordinates, storeReply?: StoreReply): Promise<void>;
  /** Redelivers the message after the delay. Throws, like `reject` and `working`, what `ack` throws. */
  retry(at: DeliveryCoordinates, delayMs: number): Promise<void>;
  /** The message waits for an approval until `resume`, at the latest until `untilMs` in epoch milliseconds. It does not count as failed. */
  park(at: DeliveryCoordinates, untilMs: number): Promise<void>;
  /** Redelivers a message that waits for an approval at once; false when the message does not wait. */
  resume(agentUid: string, message: string): Promise<boolean>;
  /** Messages that wait for an approval; later messages of their sessions wait behind them. */
  parked(agentUid: string): Promise<{ message: string; session: string }[]>;
  /** Ids of the messages of a session that have not ended: those that wait, also for an approval, and the one in flight. */
  unendedIn(agentUid: string, session: string): Promise<string[]>;
  /** The sessions of all messages that have not ended: queued, in flight, parked or waiting for a redelivery. */
  unendedSessions(agentUid: string): Promise<ReadonlySet<string>>;
  /** Moves all these messages to the dead letters. Returns their ids. */
  rejectSession(agentUid: string, session: string, rejection: Rejection): Promise<string[]>;
  /** Ends a message, delivered or not, without a dead letter; false when it has ended. `storeEnd` runs before. */
  withdraw(
    agentUid: string,
    of: { message: string; sequence: number },
    storeEnd: () => Promise<void>,
  ): Promise<boolean>;
  /** Moves the message to the dead letters. */
  reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void>;
  /** Reports progress and restarts the ack wait. */
  working(at: DeliveryCoordinates): Promise<void>;
  /** The messages in flight, each identified by its last delivery. */
  inFlight(agentUid: string): Promise<InFlight[]>;
  /**
   * Redelivers the messages in flight at once, after their pod was deleted. Returns how many. With `only`, affects these deliveries alone,
   * without those that were acknowledged or redelivered since.
   */
  redeliver(agentUid: string, only?: readonly InFlight[]): Promise<number>;
  depth(agentUid: string): Promise<InboxDepth>;
  /** Deletes the messages and the delivery state of a deleted agent. Idempotent. */
  remove(agentUid: string): Promise<void>;
}

const DEFAULT_ACK_WAITS_MS = [60_000, 60_000, 90_000, 120_000, 120_000];
/**
 * A waiting call looks again after this time, in case a notification was lost. Longer than the poll of a pod, which begins with a look: most
 * of what an idle pod costs is looks.
 */
const RECHECK_MS = 60_000;

/** The id of a message, derived from sender and key: a repeated call gets the same id without a record of the first call. */
export function messageId({ uid, key }: SenderIdentity): string {
  return `msg-${sha256(`${token(uid)}\n${key}`).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/**
 * Inboxes without a consumer: however many agents there are, the server has one stream of messages and one bucket of delivery states.
 * A message is delivered at most five times and then becomes a dead letter.
 */
export function createNatsInbox(
  connection: JetStreamConnection,
  rules: Partial<DeliveryRules> = {},
  onDeadLetter?: OnDeadLetter,
): NatsInbox {
  return new JetStreamInbox(connection, { ackWaitsMs: DEFAULT_ACK_WAITS_MS, ...rules }, onDeadLetter);
}

class JetStreamInbox implements NatsInbox {
  readonly #connection: JetStreamConnection;
  readonly #deliveries: InboxDeliveries;
  readonly #reconnects: Reconnects;

  constructor(connection: JetStreamConnection, rules: DeliveryRules, onDeadLetter: OnDeadLetter | undefined) {
    this.#connection = connection;
    this.#reconnects = new Reconnects(connection);
    const changed = (agentUid: string): void => notify(connection, subjects.notifyInbox(agentUid));
    const store = createNatsInboxStore(connection, onDeadLetter);
    this.#deliveries = new InboxDeliveries({ store, clock: connection.clock, rules, changed });
  }

  async publish(agentUid: string, sender: SenderIdentity, message: NewMessage): Promise<StoredReceipt> {
    const id = messageId(sender);
    const { from, to, session, text, call, root = id, depth, deadline, time } = message;
    const known = { id, from, to, session, text, root, depth, deadline, time };
    const content = call === undefined ? {} : { call };
    const envelope: Envelope = { ...known, ...content, ...writtenByGateways({ ...message } as unknown as JsonObject) };
    const subject = subjects.inbox(agentUid);
    const options = { id: `${sender.uid}:${id}`, traceparent: message.traceparent };
    const stored = await publish(this.#connection, subject, storedEnvelope(envelope), options);
    notify(this.#connection, subjects.notifyInbox(agentUid));
    return { id, duplicate: stored?.duplicate === true, sequence: stored?.seq ?? 0 };
  }

  async fetchNext(
    agentUid: string,
    waitMs: number,
    signal: AbortSignal,
    limit = 1,
  ): Promise<InboxDelivery | undefined> {
    const { clock, closed } = this.#connection;
    const deadline = clock.monotonic() + waitMs;
    if (signal.aborted) return undefined;
    await this.#assertOpen();
    using notifications = new NotificationListener(this.#connection, subjects.notifyInbox(agentUid));
    let isNotified = false;
    // The listener also wakes when the connection closes.
    while (!signal.aborted && !closed.aborted) {
      notifications.reset();
      const taken = await this.#take(agentUid, limit, signal, isNotified);
      if (taken.delivery !== undefined) return taken.delivery;
      const dueMs = taken.dueTime === undefined ? RECHECK_MS : taken.dueTime - clock.now().getTime();
      const leftMs = deadline - clock.monotonic();
      const pauseMs = Math.min(leftMs, RECHECK_MS, dueMs);
      isNotified = leftMs > 0 && (await notifications.wait(Math.max(1, pauseMs), signal));
      // The next call begins with a look. Not by the clock: a timer may end a moment early.
      if (!isNotified && pauseMs === leftMs) return undefined;
    }
    if (!signal.aborted) await this.#assertOpen();
    return undefined;
  }

  async ack(at: DeliveryCoordinates, storeReply?: StoreReply): Promise<void> {
    await this.#current().ack(at, storeReply);
  }

  async retry(at: DeliveryCoordinates, delayMs: number): Promise<void> {
    await this.#current().retry(at, delayMs);
  }

  async park(at: DeliveryCoordinates, untilMs: number): Promise<void> {
    await this.#current().park(at, untilMs);
  }

  async resume(agentUid: string, message: string): Promise<boolean> {
    return this.#current().resume(agentUid, message);
  }

  async parked(agentUid: string): Promise<{ message: string; session: string }[]> {
    return this.#current().parked(agentUid);
  }

  async unendedIn(agentUid: string, session: string): Promise<string[]> {
    return this.#current().unendedIn(agentUid, session);
  }

  async unendedSessions(agentUid: string): Promise<ReadonlySet<string>> {
    return this.#current().unendedSessions(agentUid);
  }

  async rejectSession(agentUid: string, session: string, rejection: Rejection): Promise<string[]> {
    return this.#current().rejectSession(agentUid, session, rejection);
  }

  async withdraw(
    agentUid: string,
    of: { message: string; sequence: number },
    storeEnd: () => Promise<void>,
  ): Promise<boolean> {
    return this.#current().withdraw(agentUid, of, storeEnd);
  }

  async reject(at: DeliveryCoordinates, code: ErrorCode, reason: string): Promise<void> {
    await this.#current().reject(at, code, reason);
  }

  async working(at: DeliveryCoordinates): Promise<void> {
    await this.#current().working(at);
  }

  async inFlight(agentUid: string): Promise<InFlight[]> {
    const found = await this.#current().inFlight(agentUid);
    return found.map(({ sequence, deliveries }) => ({ streamSequence: sequence, deliveries }));
  }

  async redeliver(agentUid: string, only?: readonly InFlight[]): Promise<number> {
    let released = 0;
    for (const { streamSequence: sequence, deliveries } of only ?? (await this.inFlight(agentUid)))
      if (await this.#current().release(agentUid, { sequence, deliveries })) released += 1;
    return released;
  }

  async depth(agentUid: string): Promise<InboxDepth> {
    const subject = subjects.inbox(agentUid);
    const [counts, current] = await Promise.all([
      messageCounts(this.#connection, STREAMS.inbox, subject),
      this.inFlight(agentUid),
    ]);
    const total = counts[subject] ?? 0;
    const stored = total === 0 ? 0 : Math.max(0, total - (await this.parked(agentUid)).length);
    const inFlight = Math.min(current.length, stored);
    return { pending: stored - inFlight, inFlight };
  }

  async remove(agentUid: string): Promise<void> {
    await purge(this.#connection, STREAMS.inbox, subjects.inbox(agentUid));
    await purge(this.#connection, bucketStream(BUCKETS.deliveries), stateSubject(agentUid));
  }

  /** To a caller that gets no message, a closed connection would look like an empty inbox, at which it calls again at once. */
  async #assertOpen(): Promise<void> {
    if (this.#connection.closed.aborted) await this.#connection.ready();
  }

  /** Without a connection it waits like an empty inbox: the connection returns, or the wait ends. */
  async #take(agentUid: string, limit: number, signal: AbortSignal, isExpected: boolean): Promise<TakeResult> {
    try {
      return await this.#current().take(agentUid, limit, signal, isExpected);
    } catch (error) {
      if (this.#connection.state().connected) throw error;
      return { dueTime: undefined };
    }
  }

  /** After a reconnect the store may be another one, in which sequences start again. */
  #current(): InboxDeliveries {
    if (this.#reconnects.happened()) this.#deliveries.clear();
    return this.#deliveries;
  }
}
