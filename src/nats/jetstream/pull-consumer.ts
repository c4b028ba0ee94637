import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { onAbort } from '../../lib/async/abort.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { JetStreamConnection } from '../connection/connection.ts';

/** One message delivered by a consumer. */
export interface PulledMessage {
  subject: string;
  data: Uint8Array;
  /** The header, not validated. */
  traceparent?: string;
  streamSequence: number;
  consumerSequence: number;
  /** Delivery count, 1 for the first. */
  deliveries: number;
}

export interface PullOptions {
  /** Creates the consumer; called when the server reports that it does not exist. */
  ensureConsumer: () => Promise<void>;
  /** Milliseconds to wait for a message. */
  waitMs: number;
  signal: AbortSignal;
}

const NO_RESPONDERS = 503;
const REQUEST_TIMEOUT = 408;
/** Expiry of one pull request. A lost connection is detected at once; the expiry covers losses that the client cannot detect. */
const MAX_REQUEST_MS = 30_000;
const GRACE_MS = 2_000;
const RETRY_MS = 250;
const NANOS_PER_MS = 1_000_000;

/**
 * Pulls one message from a durable consumer; undefined after the timeout or when the signal is aborted. Each call has its own reply
 * subject and unsubscribes at the end, so that the server delivers the next message to another waiting client. A message that
 * arrives after the end is returned to the server with a nak. Throws what `ensureConsumer` throws.
 */
export async function pullMessage(
  connection: JetStreamConnection,
  stream: string,
  consumer: string,
  options: PullOptions,
): Promise<PulledMessage | undefined> {
  const { clock } = connection;
  const deadline = clock.monotonic() + options.waitMs;
  const ended = AbortSignal.any([options.signal, connection.closed]);
  const inbox = new ReplyInbox(connection);
  const interrupt = (): void => inbox.interrupt();
  const unsubscribe = connection.onChange(interrupt);
  using _cancellation = onAbort(ended, interrupt);
  let attempts = 0;
  try {
    for (;;) {
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0 || ended.aborted) return undefined;
      const response = await requestMessage(connection, inbox, `${stream}.${consumer}`, leftMs);
      if (response !== undefined && isDelivery(response)) return pulledMessage(response);
      const status = statusOf(response);
      if (status === REQUEST_TIMEOUT) continue;
      if (status === NO_RESPONDERS) {
        await options.ensureConsumer();
        attempts += 1;
        if (attempts === 1) continue;
      }
      await clock.sleep(RETRY_MS, ended).catch(() => undefined);
    }
  } finally {
    unsubscribe();
    inbox.end();
  }
}

async function requestMessage(
  connection: JetStreamConnection,
  inbox: ReplyInbox,
  consumer: string,
  leftMs: number,
): Promise<Msg | undefined> {
  if (!connection.state().connected) return undefined;
  const expiresMs = Math.ceil(Math.min(leftMs, MAX_REQUEST_MS));
  inbox.request(`$JS.API.CONSUMER.MSG.NEXT.${consumer}`, expiresMs);
  return inbox.response(expiresMs + GRACE_MS);
}

/** 0 for a message without a status. */
function statusOf(message: Msg | undefined): number {
  return message?.headers?.code ?? 0;
}

/** A private reply subject and the messages received on it. */
class ReplyInbox {
  readonly #nats: NatsConnection;
  readonly #subject: string;
  readonly #subscription: Subscription;
  readonly #received: Msg[] = [];
  #resume: (() => void) | undefined;
  #ended = false;

  constructor(connection: JetStreamConnection) {
    this.#nats = connection.nats;
    this.#subject = connection.newInbox();
    this.#subscription = this.#nats.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null) this.#onMessage(message);
        else this.interrupt();
      },
    });
  }

  request(subject: string, expiresMs: number): void {
    const request = JSON.stringify({ batch: 1, expires: expiresMs * NANOS_PER_MS });
    this.#nats.publish(subject, request, { reply: this.#subject });
  }

  /** The next message; undefined after the timeout or an interrupt. */
  async response(timeoutMs: number): Promise<Msg | undefined> {
    if (this.#received.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#resume = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#resume = undefined;
    }
    return this.#received.shift();
  }

  interrupt(): void {
    this.#resume?.();
  }

  /** Naks deliveries that the caller no longer waits for, so that the server redelivers them at once. */
  end(): void {
    this.#ended = true;
    for (const message of this.#received) this.#nak(message);
    if (this.#nats.isClosed() || this.#nats.isDraining()) return;
    // Draining receives messages that the server sent before it processed the unsubscribe.
    this.#subscription.drain().catch(() => this.#subscription.unsubscribe());
  }

  #onMessage(message: Msg): void {
    if (this.#ended) {
      this.#nak(message);
      return;
    }
    this.#received.push(message);
    this.#resume?.();
  }

  #nak(message: Msg): void {
    const subject = isDelivery(message) ? ackSubject(message) : undefined;
    if (subject !== undefined && !this.#nats.isClosed()) this.#nats.publish(subject, '-NAK');
  }
}

function isDelivery(message: Msg): boolean {
  return ackTokens(message) !== undefined;
}

function pulledMessage(message: Msg): PulledMessage {
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

/** Rebuilt from validated tokens: the client never publishes an ack to a subject outside `$JS.ACK`. */
function ackSubject(message: Msg): string | undefined {
  const tokens = ackTokens(message);
  return tokens === undefined ? undefined : ['$JS.ACK', ...tokens].join('.');
}

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** Stream, consumer, deliveries, stream sequence, consumer sequence, time, pending. The server's two forms have them at different positions. */
function ackTokens({ reply = '' }: Msg): string[] | undefined {
  const tokens = reply.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return undefined;
  const parts = tokens.length === 9 ? tokens.slice(2) : tokens.slice(4, 11);
  return parts.length === 7 && parts.every((part) => TOKEN.test(part)) ? parts : undefined;
}
