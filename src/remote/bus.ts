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

/** A message with the lease it is worked on under. */
export interface RemoteDelivery extends Delivery {
  /** After so long without an answer or an extension the message is delivered again. */
  leaseMilliseconds: number;
  extend(op: Op): Promise<void>;
  /** The end, with what is told to who sent the message. */
  answer(reply: string, ending: 'complete' | 'cut' | 'refusal', op: Op): Promise<void>;
  /** Gives the message back. */
  giveBack(afterMilliseconds: number, op: Op): Promise<void>;
  /** Puts the message among the dead letters. */
  refuse(code: ErrorCode, message: string, op: Op): Promise<void>;
}

export interface RemoteBusOptions {
  client: GatewayClient;
  clock: Clock;
  ids: Ids;
  /** The lease of the delivery that is worked on; throws when there is none. */
  lease: () => string;
}

const LONGEST_POLL_SECONDS = 25;
const SETTLE_MILLISECONDS = 20_000;

/** The inbox of this pod's agent, and the way to others while it works on a message. */
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

  /** Throws TEMPER_TIMEOUT when no message came by the operation's deadline. */
  async next(op: Op): Promise<RemoteDelivery> {
    const { client, clock, ids } = this.#options;
    for (;;) {
      const remaining = remainingMilliseconds(op, clock);
      if (remaining <= 0) throw new TemperError('TEMPER_TIMEOUT', 'no message in time');
      const waitSeconds = Math.max(1, Math.min(LONGEST_POLL_SECONDS, Math.floor(remaining / 1_000)));
      const body: NextRequest = { waitSeconds, ...(this.#restarted ? { restarted: true } : {}) };
      const answer = await client.call({
        method: 'POST',
        path: PATHS.nextMessage,
        body,
        // Each poll is a question of its own: an answer given again would be a message worked on twice.
        op: { ...op, deadline: clock.monotonic() + waitSeconds * 1_000 + POLL_SLACK, key: ids.next('poll') },
        patience: waitSeconds * 1_000 + POLL_SLACK,
      });
      this.#restarted = false;
      if (answer !== undefined) return this.#delivery(answer);
    }
  }

  /** Pods hear of nothing but their own messages. */
  events(): AsyncIterable<never> {
    throw new TemperError('TEMPER_POLICY_DENIED', 'a pod cannot listen to events');
  }

  #delivery(answer: Json): RemoteDelivery {
    const value = objectIn(answer, 'delivery');
    const message = envelopeIn(value['message']);
    const lease = textIn(value, 'lease', 'delivery');
    const leaseMilliseconds = numberIn(value, 'leaseMilliseconds', 'delivery');
    const say = (said: LeaseAnswer, op: Op): Promise<void> => this.#settle(said, op);
    const delivery: RemoteDelivery = {
      message,
      lease,
      leaseMilliseconds,
      extend: (op) => say({ lease, action: 'extend' }, op),
      answer: (reply, ending, op) => say({ lease, action: 'ack', reply, ending }, op),
      giveBack: (afterMilliseconds, op) => say({ lease, action: 'retry', afterMilliseconds }, op),
      refuse: (code, text, op) => say({ lease, action: 'reject', code, message: text }, op),
      ack: () => delivery.answer('', 'complete', this.#op()),
      retry: (afterMilliseconds) => delivery.giveBack(afterMilliseconds, this.#op()),
      reject: (code) => delivery.refuse(code, 'the message cannot be worked on', this.#op()),
    };
    return delivery;
  }

  #op(): Op {
    const { clock, ids } = this.#options;
    const deadline = clock.monotonic() + SETTLE_MILLISECONDS;
    return { signal: new AbortController().signal, deadline, key: ids.next('settle') };
  }

  async #settle(body: LeaseAnswer, op: Op): Promise<void> {
    try {
      await this.#options.client.call({ method: 'POST', path: PATHS.leases, body, op });
    } catch (error) {
      if (!isTemperError(error) || !OVER.has(error.details['status'])) throw error;
      throw new TemperError('TEMPER_LEASE_LOST', 'the lease of this message is over; it is somebody else’s now', {
        cause: error,
      });
    }
  }
}

/** Not found, in conflict, gone: this delivery is over. */
const OVER: ReadonlySet<unknown> = new Set([404, 409, 410]);

function envelopeIn(value: Json | undefined): Envelope {
  const message = objectIn(value, 'message');
  for (const key of ['id', 'from', 'to', 'session', 'text', 'root', 'deadline', 'time'])
    textIn(message, key, 'message');
  numberIn(message, 'depth', 'message');
  return message as unknown as Envelope;
}
