import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { BusConnection } from './connection.ts';
import { settle } from './delivery.ts';
import { busFailure } from './failures.ts';
import { type Pulled, pullOne } from './pull.ts';

export interface WorkQueue {
  stream: string;
  /** A durable consumer all replicas share. */
  consumer: string;
  signal: AbortSignal;
  /** Told of a message whose handling failed; it comes again. */
  onFailure?: (error: unknown) => void;
}

const LEASE = 60_000;
const WAIT = 30_000;
const PAUSE = { shortest: 500, longest: 30_000 };
const NANOS = 1_000_000;

/**
 * Gives each message of a stream to `handle`, one at a time, and acknowledges it when that resolves, until the signal is aborted.
 * Never gives up on a message: whoever must, does so in `handle`. A bus that is away is waited for.
 */
export async function workOff(
  connection: BusConnection,
  queue: WorkQueue,
  handle: (message: Pulled) => Promise<void>,
): Promise<void> {
  const { stream, consumer, signal, onFailure } = queue;
  const ensure = (): Promise<void> => ensureConsumer(connection, stream, consumer);
  const over = AbortSignal.any([signal, connection.closed]);
  while (!over.aborted) {
    try {
      const message = await pullOne(connection, stream, consumer, { ensure, left: WAIT, signal });
      if (message === undefined) continue;
      const failure = await failureOf(() => handle(message));
      const place = { ...message, stream, consumer };
      if (failure === undefined) await settle(connection, place, '+ACK');
      else {
        onFailure?.(failure.error);
        const wait = Math.min(PAUSE.shortest * 2 ** (message.deliveries - 1), PAUSE.longest);
        await settle(connection, place, `-NAK ${JSON.stringify({ delay: wait * NANOS })}`);
      }
    } catch (error) {
      onFailure?.(error);
      await connection.clock.sleep(PAUSE.shortest, over).catch(() => undefined);
    }
  }
}

async function failureOf(work: () => Promise<void>): Promise<{ error: unknown } | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return { error };
  }
}

async function ensureConsumer(connection: BusConnection, stream: string, consumer: string): Promise<void> {
  try {
    const config = {
      durable_name: consumer,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: LEASE * NANOS,
      max_deliver: -1,
      max_ack_pending: 64,
    };
    await connection.ask(() => connection.manager.consumers.add(stream, config));
  } catch (error) {
    throw busFailure(error, `opening ${stream}`);
  }
}
