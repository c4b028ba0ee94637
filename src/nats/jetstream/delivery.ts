import { TemperError } from '../../lib/errors.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError, isConsumerMissing, isStreamMissing } from '../connection/errors.ts';
import { token } from './names.ts';

/** The numbers by which the server identifies a delivery. */
export interface ConsumerDelivery {
  stream: string;
  consumer: string;
  streamSequence: number;
  consumerSequence: number;
  deliveries: number;
}

const TIMEOUT_MS = 2_000;

/**
 * Sends `verb` (`+ACK`, `-NAK`, `+TERM`, `+WPI`) for a delivery and waits for the server's confirmation. The ack subject is built
 * from the numbers given, never copied from a message. Throws TEMPER_NOT_FOUND when the server does not know the delivery: its
 * consumer was deleted, or the server was killed before it stored the delivery; it then redelivers the message.
 */
export async function sendAck(connection: JetStreamConnection, at: ConsumerDelivery, verb: string): Promise<void> {
  const { stream, consumer, streamSequence, consumerSequence, deliveries } = at;
  const numbers = [deliveries, streamSequence, consumerSequence].map(checkedSequence);
  const subject = ['$JS.ACK', stream, token(consumer), ...numbers, 0, 0].join('.');
  try {
    await connection.request(() => connection.nats.request(subject, verb, { timeout: TIMEOUT_MS }), 'ack');
  } catch (error) {
    // The server sends no response for an unknown delivery.
    if (connection.state().connected) await assertDelivered(connection, at);
    throw natsError(error, 'acknowledging a delivery');
  }
}

async function assertDelivered(
  connection: JetStreamConnection,
  { stream, consumer, streamSequence }: ConsumerDelivery,
): Promise<void> {
  try {
    const info = await connection.request(() => connection.manager.consumers.info(stream, consumer));
    if (info.delivered.stream_seq >= streamSequence) return;
  } catch (error) {
    if (!isConsumerMissing(error) && !isStreamMissing(error)) throw natsError(error, 'acknowledging a delivery');
  }
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    'the server does not know this delivery: the agent was deleted, or the server lost its state and will redeliver the message',
  );
}

function checkedSequence(value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new TemperError('TEMPER_INTERNAL', `delivery coordinates contain ${value}, which is not a valid sequence`);
}
