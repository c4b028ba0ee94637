import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';
import { busFailure, isConsumerMissing, isStreamMissing } from './failures.ts';
import { token } from './names.ts';

/** Everything another process needs to settle a delivery. Plain JSON; holds no secret and is no authority: sign it. */
export interface DeliveryCoordinates {
  agentUid: string;
  /** Id of the message. */
  message: string;
  streamSequence: number;
  consumerSequence: number;
  /** 1 for the first. */
  deliveries: number;
}

/** What the server calls a delivery by. */
export interface Place {
  stream: string;
  consumer: string;
  streamSequence: number;
  consumerSequence: number;
  deliveries: number;
}

const TIMEOUT = 2_000;

/**
 * Ends or extends a delivery and waits until the server has confirmed. The subject is made of our own numbers, never taken from
 * a message. TEMPER_NOT_FOUND when the server knows no such delivery: its consumer is gone, or it was killed and has forgotten
 * that it delivered; the message then comes again.
 */
export async function settle(connection: BusConnection, at: Place, verb: string): Promise<void> {
  const { stream, consumer, streamSequence, consumerSequence, deliveries } = at;
  const numbers = [deliveries, streamSequence, consumerSequence].map(whole);
  const subject = ['$JS.ACK', stream, token(consumer), ...numbers, 0, 0].join('.');
  try {
    await connection.ask(() => connection.nats.request(subject, verb, { timeout: TIMEOUT }));
  } catch (error) {
    // The server does not answer to what it does not know.
    if (connection.state().connected) await assertKnown(connection, at);
    throw busFailure(error, 'settling a delivery');
  }
}

async function assertKnown(connection: BusConnection, { stream, consumer, streamSequence }: Place): Promise<void> {
  try {
    const info = await connection.ask(() => connection.manager.consumers.info(stream, consumer));
    if (info.delivered.stream_seq >= streamSequence) return;
  } catch (error) {
    if (!isConsumerMissing(error) && !isStreamMissing(error)) throw busFailure(error, 'settling a delivery');
  }
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    'the server knows no such delivery: the agent was removed, or the server lost what it knew of it and will deliver it again',
  );
}

function whole(value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new TemperError('TEMPER_INTERNAL', `coordinates of a delivery hold ${value}, which is no sequence`);
}
