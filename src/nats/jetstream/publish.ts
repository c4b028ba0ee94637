import type { PubAck } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { sha256 } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { TemperError } from '../../lib/errors.ts';
import { spanContextOf, TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { natsError, isConflict } from '../connection/errors.ts';
import { messageTtlOf } from './buckets.ts';

/** Maximum size of a caller's payload. The server accepts 256 KiB including headers and the envelope around the payload. */
const MAX_PAYLOAD_BYTES = 200 * 1_024;
/** Maximum size of a payload that contains another message, such as a dead letter. */
export const MAX_WRAPPED_BYTES = 240 * 1_024;
const TIMEOUT_MS = 5_000;

export interface PublishOptions {
  /** `Nats-Msg-Id`: within the stream's duplicate window the server stores one message per id. */
  id?: string;
  /** Stores the message only if this is the last sequence of the subject; 0: only if the subject has no message. */
  expectedLastSequence?: number;
  /** Only in a stream of buckets with other ages: how long the server keeps the message, as it reads it: `60s`. */
  ttl?: string;
  /** Maximum size of the payload in bytes. */
  maxBytes?: number;
  /** W3C Trace Context of the publisher, sent as a header. An invalid one is left out. */
  traceparent?: string | undefined;
}

/** A `Nats-Msg-Id` from any text. Hashed, so that no text of a sender becomes a header value. */
export function deduplicationId(key: string): string {
  return `once:${sha256(key).slice('sha256:'.length)}`;
}

/** Undefined when `expectedLastSequence` is not the last sequence of the subject. */
export type Published = Pick<PubAck, 'seq' | 'duplicate'> | undefined;

/**
 * Publishes a message and resolves when the server has stored it. Only this function sets headers. While disconnected it waits up to
 * 5 s: in the client's own buffer the message could be sent after the caller has stopped waiting.
 * Throws TEMPER_BUS_FULL, TEMPER_BUS_TOO_LARGE or TEMPER_BUS_UNAVAILABLE; after the last the server may have stored the message.
 */
export async function publish(
  connection: JetStreamConnection,
  subject: string,
  value: Json | Uint8Array,
  options: PublishOptions = {},
): Promise<Published> {
  const { id, expectedLastSequence, maxBytes = MAX_PAYLOAD_BYTES, traceparent } = options;
  const payload = value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value));
  if (payload.byteLength > maxBytes) {
    throw new TemperError(
      'TEMPER_BUS_TOO_LARGE',
      `${subject}: ${payload.byteLength} bytes exceed the maximum of ${maxBytes} bytes per message; send less at once`,
    );
  }
  try {
    const expect = expectedLastSequence === undefined ? {} : { expect: { lastSubjectSequence: expectedLastSequence } };
    const msgID = id === undefined ? {} : { msgID: id };
    const trace = traceHeaders(traceparent);
    const ttl = options.ttl ?? messageTtlOf(subject);
    const stored = await connection.request(
      () =>
        connection.jetstream.publish(subject, payload, {
          timeout: TIMEOUT_MS,
          ...msgID,
          ...expect,
          ...trace,
          ...(ttl === undefined ? {} : { ttl }),
        }),
      'publish',
    );
    if (!stored.duplicate) connection.published(subject, payload.byteLength, stored.seq);
    return stored;
  } catch (error) {
    if (expectedLastSequence !== undefined && isConflict(error)) return undefined;
    throw natsError(error, `publishing to ${subject}`);
  }
}

/**
 * Removes the value of a subject in a stream of buckets with other ages: the server keeps an empty value for a second. For processes that
 * may not purge the stream. Idempotent. Throws like `publish`.
 */
export async function expire(connection: JetStreamConnection, subject: string): Promise<void> {
  await publish(connection, subject, {}, { ttl: '1s' });
}

function traceHeaders(traceparent: string | undefined) {
  if (traceparent === undefined || spanContextOf(traceparent) === undefined) return {};
  const result = headers();
  result.set(TRACEPARENT, traceparent);
  return { headers: result };
}
