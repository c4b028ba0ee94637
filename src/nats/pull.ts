import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { TRACEPARENT } from '../telemetry/traceparent.ts';
import type { BusConnection } from './connection.ts';

/** One message that a consumer gave out. */
export interface Pulled {
  subject: string;
  data: Uint8Array;
  /** The header, as it came. */
  traceparent?: string;
  streamSequence: number;
  consumerSequence: number;
  /** 1 for the first. */
  deliveries: number;
}

export interface PullOptions {
  /** Makes the consumer; called when the server knows none. */
  ensure: () => Promise<void>;
  /** Milliseconds to wait for a message. */
  left: number;
  signal: AbortSignal;
}

const NO_RESPONDERS = 503;
const TIMED_OUT = 408;
/** How long the server keeps one request. A connection that was lost is noticed at once; this is for what nobody notices. */
const LONGEST_REQUEST = 30_000;
const GRACE = 2_000;
const PAUSE = 250;
const NANOS = 1_000_000;

/**
 * Waits for one message of a durable consumer; nothing when the time is over or the signal aborted. Each wait has a subject of its
 * own, given up when it ends: the server then gives its message to another who waits. What it had sent already is given back.
 */
export async function pullOne(
  connection: BusConnection,
  stream: string,
  consumer: string,
  options: PullOptions,
): Promise<Pulled | undefined> {
  const { clock } = connection;
  const until = clock.monotonic() + options.left;
  const ended = AbortSignal.any([options.signal, connection.closed]);
  const wait = new Wait(connection);
  const interrupt = (): void => wait.interrupt();
  const forget = connection.onChange(interrupt);
  ended.addEventListener('abort', interrupt, { once: true });
  let attempts = 0;
  try {
    for (;;) {
      const left = until - clock.monotonic();
      if (left <= 0 || ended.aborted) return undefined;
      const answer = await asked(connection, wait, `${stream}.${consumer}`, left);
      if (answer !== undefined && isDelivery(answer)) return pulledFrom(answer);
      const status = statusOf(answer);
      if (status === TIMED_OUT) continue;
      if (status === NO_RESPONDERS) {
        await options.ensure();
        attempts += 1;
        if (attempts === 1) continue;
      }
      await clock.sleep(PAUSE, ended).catch(() => undefined);
    }
  } finally {
    forget();
    ended.removeEventListener('abort', interrupt);
    wait.end();
  }
}

async function asked(connection: BusConnection, wait: Wait, consumer: string, left: number): Promise<Msg | undefined> {
  if (!connection.state().connected) return undefined;
  const expires = Math.ceil(Math.min(left, LONGEST_REQUEST));
  wait.request(`$JS.API.CONSUMER.MSG.NEXT.${consumer}`, expires);
  return wait.answer(expires + GRACE);
}

/** 0 for none. */
function statusOf(message: Msg | undefined): number {
  return message?.headers?.code ?? 0;
}

/** A private subject and whoever waits at it. */
class Wait {
  readonly #nats: NatsConnection;
  readonly #subject: string;
  readonly #subscription: Subscription;
  readonly #arrived: Msg[] = [];
  #wake: (() => void) | undefined;
  #over = false;

  constructor(connection: BusConnection) {
    this.#nats = connection.nats;
    this.#subject = connection.newInbox();
    this.#subscription = this.#nats.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null) this.#take(message);
        else this.interrupt();
      },
    });
  }

  request(subject: string, expires: number): void {
    const request = JSON.stringify({ batch: 1, expires: expires * NANOS });
    this.#nats.publish(subject, request, { reply: this.#subject });
  }

  /** Nothing when it took too long or was interrupted. */
  async answer(milliseconds: number): Promise<Msg | undefined> {
    if (this.#arrived.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    return this.#arrived.shift();
  }

  interrupt(): void {
    this.#wake?.();
  }

  /** Deliveries that nobody waits for any more go back at once. */
  end(): void {
    this.#over = true;
    for (const message of this.#arrived) this.#giveBack(message);
    if (this.#nats.isClosed() || this.#nats.isDraining()) return;
    // Draining takes in what the server sent before it knew.
    this.#subscription.drain().catch(() => this.#subscription.unsubscribe());
  }

  #take(message: Msg): void {
    if (this.#over) {
      this.#giveBack(message);
      return;
    }
    this.#arrived.push(message);
    this.#wake?.();
  }

  #giveBack(message: Msg): void {
    const subject = isDelivery(message) ? ackSubjectOf(message) : undefined;
    if (subject !== undefined && !this.#nats.isClosed()) this.#nats.publish(subject, '-NAK');
  }
}

function isDelivery(message: Msg): boolean {
  return ackTokens(message) !== undefined;
}

function pulledFrom(message: Msg): Pulled {
  const [, , deliveries, streamSequence, consumerSequence] = ackTokens(message) ?? [];
  const traceparent = message.headers?.get(TRACEPARENT);
  return {
    subject: message.subject,
    data: message.data,
    ...(traceparent === undefined || traceparent === '' ? {} : { traceparent }),
    streamSequence: Number(streamSequence),
    consumerSequence: Number(consumerSequence),
    deliveries: Number(deliveries),
  };
}

/** Made anew from its parts: only subjects below `$JS.ACK` are ever answered to. */
function ackSubjectOf(message: Msg): string | undefined {
  const tokens = ackTokens(message);
  return tokens === undefined ? undefined : ['$JS.ACK', ...tokens].join('.');
}

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** Stream, consumer, deliveries, place in the stream, place in the consumer, time, pending: the server's two forms hold them at two places. */
function ackTokens({ reply = '' }: Msg): string[] | undefined {
  const tokens = reply.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return undefined;
  const parts = tokens.length === 9 ? tokens.slice(2) : tokens.slice(4, 11);
  return parts.length === 7 && parts.every((part) => TOKEN.test(part)) ? parts : undefined;
}
