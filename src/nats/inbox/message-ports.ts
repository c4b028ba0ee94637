import { DeliveryEnd, deliveryLost } from '../../bus/delivery-end.ts';
import type { Delivery, Envelope, MessageDraft, MessageReceiver, MessageSender, Receipt } from '../../bus/port.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { NatsInbox, SenderIdentity, StoreReply } from './inbox.ts';
import type { DeliveryCoordinates } from './inbox-deliveries.ts';

/** The ends of a delivery that any process may call; `token` of a `Delivery` identifies it. */
export interface InboxDeliveryEnds extends Pick<Delivery, 'ack' | 'retry' | 'reject'> {
  /** `storeReply` takes effect before the message is acknowledged, and not for a delivery that has ended. */
  ack(storeReply?: StoreReply): Promise<void>;
  /** `reason` is for users. */
  reject(code: ErrorCode, reason?: string): Promise<void>;
  /** The message waits for an approval, at the latest until `untilMs` in epoch milliseconds. */
  park(untilMs: number): Promise<void>;
  /** Restarts the acknowledgement timeout. Throws TEMPER_DELIVERY_LOST after the end of the delivery. */
  extend(): Promise<void>;
}

export interface ReceivedDelivery extends Delivery, InboxDeliveryEnds {
  coordinates: DeliveryCoordinates;
  /** Acknowledgement timeout in milliseconds. */
  ackTimeoutMs: number;
  ack(storeReply?: StoreReply): Promise<void>;
  reject(code: ErrorCode, reason?: string): Promise<void>;
}

/** Longest wait of one fetch, in milliseconds. */
const MAX_FETCH_MS = 60_000;

/** The inbox of one agent as a port. `resume` continues a delivery that another process received. */
export class InboxReceiver implements MessageReceiver {
  readonly #inbox: NatsInbox;
  readonly #agentUid: string;
  readonly #clock: Clock;
  readonly #limit: number;

  /** At most `limit` messages of the agent are in flight. */
  constructor(inbox: NatsInbox, agentUid: string, clock: Clock, limit = 1) {
    this.#inbox = inbox;
    this.#agentUid = agentUid;
    this.#clock = clock;
    this.#limit = limit;
  }

  async next(op: CallOptions): Promise<ReceivedDelivery> {
    for (;;) {
      if (op.signal.aborted) throw new TemperError('TEMPER_CANCELLED', 'the wait for a message was cancelled');
      const remaining = remainingMs(op, this.#clock);
      const waitMs = Math.min(remaining, MAX_FETCH_MS);
      const fetched = await this.#inbox.fetchNext(this.#agentUid, waitMs, op.signal, this.#limit);
      if (fetched === undefined) {
        if (op.signal.aborted || remainingMs(op, this.#clock) > 0) continue;
        throw new TemperError('TEMPER_TIMEOUT', 'no message arrived in time');
      }
      const { message, coordinates, ackWaitMs } = fetched;
      const token = JSON.stringify(coordinates);
      return { message, coordinates, token, ackTimeoutMs: ackWaitMs, ...this.resume(coordinates) };
    }
  }

  resume(at: DeliveryCoordinates): InboxDeliveryEnds {
    const inbox = this.#inbox;
    const delivery = new DeliveryEnd();
    return {
      ack: (storeReply) => delivery.end(() => lostWhenUnknown(inbox.ack(at, storeReply))),
      retry: (delayMs) => delivery.end(() => lostWhenUnknown(inbox.retry(at, delayMs))),
      park: (untilMs) => delivery.end(() => lostWhenUnknown(inbox.park(at, untilMs))),
      reject: (code, reason = 'the message cannot be processed') =>
        delivery.end(() => lostWhenUnknown(inbox.reject(at, code, reason))),
      async extend() {
        delivery.assertOpen();
        await lostWhenUnknown(inbox.working(at));
      },
    };
  }
}

/** A delivery that the server does not know any more will be redelivered, so it is lost for its receiver. */
async function lostWhenUnknown(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    throw isTemperError(error, 'TEMPER_NOT_FOUND') ? deliveryLost(error) : error;
  }
}

export interface InboxSenderOptions {
  inbox: NatsInbox;
  clock: Clock;
  /** The sending agent. */
  from: { uid: string; name: string };
  /** The chain that the messages continue. `deadline`: RFC 3339. */
  chain: Pick<Envelope, 'root' | 'depth' | 'deadline' | 'source' | 'tainted' | 'ancestors' | 'asker'>;
  /** The uid of an agent; throws TEMPER_NOT_FOUND for an unknown name. */
  receiverUid: (name: string) => string;
  /** W3C Trace Context of the sender's span. */
  traceparent?: string;
}

/** The identity of a message between agents, by which a repeated request is the same message. */
export function senderOf(uid: string, receiverUid: string, key: string): SenderIdentity {
  return { uid, key: `${receiverUid}/${key}` };
}

/** Sends messages of one agent within one chain. The caller has checked the policy and the depth of the chain. */
export class InboxSender implements MessageSender {
  readonly #options: InboxSenderOptions;

  constructor(options: InboxSenderOptions) {
    this.#options = options;
  }

  async send({ to, session, text }: MessageDraft, op: CallOptions): Promise<Receipt> {
    const { inbox, clock, from, chain, receiverUid, traceparent } = this.#options;
    const receiver = receiverUid(to);
    const message = {
      to,
      from: from.name,
      session,
      text,
      ...chain,
      time: clock.now().toISOString(),
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const { id, duplicate } = await inbox.publish(receiver, senderOf(from.uid, receiver, op.key), message);
    return { id, duplicate };
  }
}
