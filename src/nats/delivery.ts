import { TemperError } from '../lib/errors.ts';
import type { BusConnection } from './connection.ts';
import { busFailure, isConsumerMissing, isStreamMissing, isUnanswered } from './failures.ts';
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

const TIMEOUT = 5_000;

/**
 * Ends or extends a delivery and waits until the server has confirmed. The subject is made of our own numbers, never taken from
 * a message. TEMPER_NOT_FOUND when the consumer is gone.
 */
export async function settle(connection: BusConnection, at: Place, verb: string): Promise<void> {
  const { stream, consumer, streamSequence, consumerSequence, deliveries } = at;
  const numbers = [deliveries, streamSequence, consumerSequence].map(whole);
  const subject = ['$JS.ACK', stream, token(consumer), ...numbers, 0, 0].join('.');
  try {
    await connection.ask(() => connection.nats.request(subject, verb, { timeout: TIMEOUT }));
  } catch (error) {
    if (isUnanswered(error)) await assertConsumer(connection, at);
    throw busFailure(error, 'settling a delivery');
  }
}

async function assertConsumer(connection: BusConnection, { stream, consumer }: Place): Promise<void> {
  try {
    await connection.ask(() => connection.manager.consumers.info(stream, consumer));
  } catch (error) {
    if (!isConsumerMissing(error) && !isStreamMissing(error)) throw busFailure(error, 'settling a delivery');
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      'the inbox of this delivery is gone: the agent was removed, or the store of the bus was lost',
    );
  }
}

function whole(value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new TemperError('TEMPER_INTERNAL', `coordinates of a delivery hold ${value}, which is no sequence`);
}
