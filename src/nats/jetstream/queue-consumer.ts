import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { JetStreamConnection } from '../connection/connection.ts';
import { type ConsumerDelivery, sendAck } from './delivery.ts';
import { natsError } from '../connection/errors.ts';
import type { StreamQueue } from './names.ts';
import { type PulledMessage, pullMessage } from './pull-consumer.ts';

export interface QueueConsumerOptions extends StreamQueue {
  signal: AbortSignal;
  /** Called when the handler of a message failed; the message is redelivered. */
  onFailure?: (error: unknown) => void;
}

const ACK_WAIT_MS = 20_000;
const PULL_TIMEOUT_MS = 30_000;
const RETRY = { minMs: 500, maxMs: 30_000 };
const NANOS_PER_MS = 1_000_000;
/** A handler may take longer than ACK_WAIT_MS: the message is not redelivered while it works. */
const PROGRESS_INTERVAL_MS = ACK_WAIT_MS / 3;

/**
 * Calls `handle` for each message of a queue, one at a time, and acknowledges the message when `handle` resolves, until the signal is
 * aborted. A failed message is redelivered without a limit: `handle` must resolve for a message it cannot process. Waits while NATS is
 * unavailable. Never throws.
 */
export async function consumeQueue(
  connection: JetStreamConnection,
  queue: QueueConsumerOptions,
  handle: (message: PulledMessage) => Promise<void>,
): Promise<void> {
  const { stream, consumer, signal, onFailure } = queue;
  const ensure = (): Promise<void> => ensureConsumer(connection, queue);
  const ended = AbortSignal.any([signal, connection.closed]);
  while (!ended.aborted) {
    try {
      const message = await pullMessage(connection, stream, consumer, {
        ensureConsumer: ensure,
        waitMs: PULL_TIMEOUT_MS,
        signal,
      });
      if (message === undefined) continue;
      const delivery = { ...message, stream, consumer };
      const failure = await errorFrom(() => whileReporting(connection, delivery, () => handle(message)));
      if (failure === undefined) await sendAck(connection, delivery, '+ACK');
      else {
        onFailure?.(failure.error);
        const delayMs = Math.min(RETRY.minMs * 2 ** (message.deliveries - 1), RETRY.maxMs);
        await sendAck(connection, delivery, `-NAK ${JSON.stringify({ delay: delayMs * NANOS_PER_MS })}`);
      }
    } catch (error) {
      onFailure?.(error);
      await connection.clock.sleep(RETRY.minMs, ended).catch(() => undefined);
    }
  }
}

/** Extends the acknowledgement timeout while the handler works. */
async function whileReporting(
  connection: JetStreamConnection,
  delivery: ConsumerDelivery,
  work: () => Promise<void>,
): Promise<void> {
  // A failed report only lets the message be redelivered, which every handler must expect.
  const report = (): void => void sendAck(connection, delivery, '+WPI').catch(() => undefined);
  const timer = setInterval(report, PROGRESS_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
}

async function errorFrom(work: () => Promise<void>): Promise<{ error: unknown } | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return { error };
  }
}

async function ensureConsumer(
  connection: JetStreamConnection,
  { stream, consumer, filter }: StreamQueue,
): Promise<void> {
  try {
    const config = {
      durable_name: consumer,
      filter_subject: filter,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: ACK_WAIT_MS * NANOS_PER_MS,
      max_deliver: -1,
      max_ack_pending: 64,
    };
    await connection.request(() => connection.manager.consumers.add(stream, config));
  } catch (error) {
    throw natsError(error, `creating a consumer of ${stream}`);
  }
}
