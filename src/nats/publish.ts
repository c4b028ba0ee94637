import type { PubAck } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { sha256 } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import { TemperError } from '../lib/errors.ts';
import { spanContextOf, TRACEPARENT } from '../telemetry/traceparent.ts';
import type { BusConnection } from './connection.ts';
import { busFailure, isConflict } from './failures.ts';

/** Bytes of a payload given by a caller. The server takes 256 KiB with headers and what we wrap around. */
const MAXIMUM_PAYLOAD = 200 * 1_024;
/** Bytes of a payload that wraps one of those. */
export const MAXIMUM_WRAPPED = 240 * 1_024;
const TIMEOUT = 5_000;

export interface PublishOptions {
  /** The same id within the stream's window is stored once. */
  id?: string;
  /** Only if this is the last sequence of the subject; 0 for none yet. */
  after?: number;
  /** Bytes. */
  maximum?: number;
  /** W3C Trace Context of what publishes; goes into a header. What is none is left out. */
  traceparent?: string | undefined;
}

/** An id made of any text, so that nothing a sender chose becomes a header. */
export function onceId(key: string): string {
  return `once:${sha256(key).slice('sha256:'.length)}`;
}

/** Nothing when `after` no longer held. */
export type Published = Pick<PubAck, 'seq' | 'duplicate'> | undefined;

/**
 * Stores a message and resolves when the server has it. Headers are made here and nowhere else. While the connection is down it
 * waits a little rather than leave the message in a buffer that outlives the caller's interest.
 * TEMPER_BUS_FULL, TEMPER_BUS_TOO_LARGE, TEMPER_BUS_UNAVAILABLE; after the last the message may have been stored all the same.
 */
export async function publish(
  connection: BusConnection,
  subject: string,
  value: Json | Uint8Array,
  options: PublishOptions = {},
): Promise<Published> {
  const { id, after, maximum = MAXIMUM_PAYLOAD, traceparent } = options;
  const payload = value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value));
  if (payload.byteLength > maximum) {
    throw new TemperError(
      'TEMPER_BUS_TOO_LARGE',
      `${subject}: ${payload.byteLength} bytes are more than the ${maximum} that a message may have; send less at once`,
    );
  }
  try {
    const expect = after === undefined ? {} : { expect: { lastSubjectSequence: after } };
    const msgID = id === undefined ? {} : { msgID: id };
    const traced = tracedHeaders(traceparent);
    return await connection.ask(() =>
      connection.jetstream.publish(subject, payload, { timeout: TIMEOUT, ...msgID, ...expect, ...traced }),
    );
  } catch (error) {
    if (after !== undefined && isConflict(error)) return undefined;
    throw busFailure(error, `publishing to ${subject}`);
  }
}

function tracedHeaders(traceparent: string | undefined) {
  if (traceparent === undefined || spanContextOf(traceparent) === undefined) return {};
  const made = headers();
  made.set(TRACEPARENT, traceparent);
  return { headers: made };
}
