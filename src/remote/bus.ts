import type { Bus, Delivery, Envelope, Receipt } from '../bus/port.ts';
import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import { type Op, remainingMilliseconds } from '../lib/operation.ts';
import { POLL_SLACK } from './assignment.ts';
import type { GatewayClient } from './gateway-client.ts';
import { numberIn, objectIn, textIn } from './reading.ts';
import { type LeaseAnswer, type NextRequest, PATHS, type SendRequest } from './wire.ts';

/** A delivery with its delivery token. */
export interface RemoteDelivery extends Delivery {
  /** Acknowledgement timeout in milliseconds: without an outcome or an extension by then the message is redelivered. */
  leaseMilliseconds: number;
  extend(op: Op): Promise<void>;
  /** Acknowledges the message and publishes the reply for its sender. */
  answer(reply: string, ending: 'complete' | 'cut' | 'refusal', op: Op): Promise<void>;
  /** Returns the message; it is redelivered after the delay. */
  giveBack(afterMilliseconds: number, op: Op): Promise<void>;
  /** Dead-letters the message. */
  refuse(code: ErrorCode, message: string, op: Op): Promise<void>;
}

export interface RemoteBusOptions {
  client: GatewayClient;
  clock: Clock;
  ids: Ids;
  /** The token of the current delivery; throws when the pod has no delivery. */
  lease: () => string;
}

const MAX_POLL_SECONDS = 25;
const SETTLE_MS = 20_000;

/** Receives the messages of this pod's agent, and sends messages to other agents while it works on one. */
export class RemoteBus implements Bus {
  readonly #options: RemoteBusOptions;
  #restarted = true;

  constructor(options: RemoteBusOptions) {
    this.#options = options;
  }

  async send(draft: Parameters<Bus['send']>[0], op: Op): Promise<Receipt> {
    const body: SendRequest = { lease: this.#options.lease(), draft };
    const answer = objectIn(
      await this.#options.client.call({ method: 'POST', path: PATHS.messages, body, op }),
      'receipt',
    );
    return { id: textIn(answer, 'id', 'receipt'), duplicate: answer['duplicate'] === true };
  }

  /** Throws TEMPER_TIMEOUT when no message arrives by the operation's deadline. */
  async next(op: Op): Promise<RemoteDelivery> {
    const { client, clock, ids } = this.#options;
    for (;;) {
      const remaining = remainingMilliseconds(op, clock);
      if (remaining <= 0) throw new TemperError('TEMPER_TIMEOUT', 'no message arrived in time');
      const waitSeconds = Math.max(1, Math.min(MAX_POLL_SECONDS, Math.floor(remaining / 1_000)));
      const body: NextRequest = { waitSeconds, ...(this.#restarted ? { restarted: true } : {}) };
      const answer = await client.call({
        method: 'POST',
        path: PATHS.nextMessage,
        body,
        // Each poll has its own idempotency key: a replayed response would be a message processed twice.
        op: { ...op, deadline: clock.monotonic() + waitSeconds * 1_000 + POLL_SLACK, key: ids.next('poll') },
        patience: waitSeconds * 1_000 + POLL_SLACK,
      });
      this.#restarted = false;
      if (answer !== undefined) return this.#delivery(answer);
    }
  }

  /** Not available to pods: a pod receives only its own messages. */
  events(): AsyncIterable<never> {
    throw new TemperError('TEMPER_POLICY_DENIED', 'a pod cannot subscribe to events');
  }

  #delivery(answer: Json): RemoteDelivery {
    const value = objectIn(answer, 'delivery');
    const message = envelopeIn(value['message']);
    const lease = textIn(value, 'lease', 'delivery');
    const leaseMilliseconds = numberIn(value, 'leaseMilliseconds', 'delivery');
    const settle = (outcome: LeaseAnswer, op: Op): Promise<void> => this.#settle(outcome, op);
    const delivery: RemoteDelivery = {
      message,
      lease,
      leaseMilliseconds,
      extend: (op) => settle({ lease, action: 'extend' }, op),
      answer: (reply, ending, op) => settle({ lease, action: 'ack', reply, ending }, op),
      giveBack: (afterMilliseconds, op) => settle({ lease, action: 'retry', afterMilliseconds }, op),
      refuse: (code, text, op) => settle({ lease, action: 'reject', code, message: text }, op),
      ack: () => delivery.answer('', 'complete', this.#op()),
      retry: (afterMilliseconds) => delivery.giveBack(afterMilliseconds, this.#op()),
      reject: (code) => delivery.refuse(code, 'the message cannot be processed', this.#op()),
    };
    return delivery;
  }

  #op(): Op {
    const { clock, ids } = this.#options;
    const deadline = clock.monotonic() + SETTLE_MS;
    return { signal: new AbortController().signal, deadline, key: ids.next('settle') };
  }

  async #settle(body: LeaseAnswer, op: Op): Promise<void> {
    try {
      await this.#options.client.call({ method: 'POST', path: PATHS.leases, body, op });
    } catch (error) {
      if (!isTemperError(error) || !DELIVERY_ENDED.has(error.details['status'])) throw error;
      throw new TemperError(
        'TEMPER_LEASE_LOST',
        'this delivery has ended: the message was acknowledged or redelivered',
        {
          cause: error,
        },
      );
    }
  }
}

/** Not found, conflict, gone: this delivery has ended. */
const DELIVERY_ENDED: ReadonlySet<unknown> = new Set([404, 409, 410]);

function envelopeIn(value: Json | undefined): Envelope {
  const message = objectIn(value, 'message');
  for (const key of ['id', 'from', 'to', 'session', 'text', 'root', 'deadline', 'time'])
    textIn(message, key, 'message');
  numberIn(message, 'depth', 'message');
  return message as unknown as Envelope;
}
