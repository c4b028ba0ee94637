import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { formatError } from './errors.ts';

/** How much and how long an answer may be. */
export interface AnswerLimits {
  /** Bytes of one answer, headers not counted. */
  bytes: number;
  /** Milliseconds between two pieces of an answer. The whole is bounded by the deadline of the call. */
  idleMilliseconds: number;
}

export const DEFAULT_LIMITS: AnswerLimits = { bytes: 10 * 1_024 * 1_024, idleMilliseconds: 120_000 };

type Fetch = typeof globalThis.fetch;
type Piece = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>;

/**
 * The fetch given to the SDKs. It follows no redirect (the key would travel along), and passes on an answer only while
 * it stays within the limits and is well-formed UTF-8: a decoder that repairs would hand changed arguments to a tool.
 */
export function guardedFetch(provider: string, clock: Clock, limits: AnswerLimits, fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' });
    if (!response.body) return response;
    const { status, statusText, headers } = response;
    return new Response(guarded(response.body, provider, clock, limits), { status, statusText, headers });
  };
}

function guarded(
  body: ReadableStream<Uint8Array>,
  provider: string,
  clock: Clock,
  limits: AnswerLimits,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let received = 0;
  const refuse = (controller: ReadableStreamDefaultController, error: TemperError): void => {
    controller.error(error);
    // The connection is given up; how it ends is of no interest any more.
    reader.cancel(error).catch(() => undefined);
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = await withinIdle(reader, provider, clock, limits.idleMilliseconds).catch((error: unknown) => error);
      if (piece instanceof TemperError) return refuse(controller, piece);
      if (piece instanceof Error) return controller.error(piece);
      const { done, value } = piece as Piece;
      received += value?.byteLength ?? 0;
      if (received > limits.bytes)
        return refuse(controller, formatError(provider, `sent an answer larger than ${limits.bytes} bytes`));
      try {
        decoder.decode(value, { stream: !done });
      } catch (error) {
        return refuse(controller, formatError(provider, 'sent text that is not UTF-8', 'never', error));
      }
      if (done) return controller.close();
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

async function withinIdle(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  provider: string,
  clock: Clock,
  milliseconds: number,
): Promise<Piece> {
  const arrived = new AbortController();
  const silence = clock.sleep(milliseconds, arrived.signal).then(() => {
    throw new TemperError('TEMPER_MODEL_TIMEOUT', `provider "${provider}" sent nothing for ${milliseconds} ms`, {
      retry: 'backoff',
      details: { provider },
    });
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    // The loser of the race must not surface as an unhandled rejection.
    silence.catch(() => undefined);
    arrived.abort();
  }
}
