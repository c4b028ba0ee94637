import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { NestingLimit } from './call/nesting-limit.ts';
import { formatError } from './provider-errors.ts';
import { unreachableError } from './unreachable.ts';

/** Limits on the size and duration of an answer. */
export interface AnswerLimits {
  /** Maximum bytes of one answer, without headers. */
  maxBytes: number;
  /** Maximum time to the headers of an answer: a local provider sends them after it has read the whole prompt, or loaded the model. */
  headersTimeoutMs: number;
  /** Maximum time between two chunks of an answer. The deadline of the call limits the total time. */
  idleTimeoutMs: number;
  /** Pieces of an answer that may be short. A longer answer has at least 32 bytes per piece on average: each costs work. */
  maxShortPieces: number;
  /** Maximum lists and objects of one JSON body or one event. */
  maxContainers: number;
  /** Maximum time to read an answer that its reader left, for the provider's count. 0: the answer is aborted at once. */
  maxUnreadMs: number;
}

export const DEFAULT_LIMITS: AnswerLimits = {
  maxBytes: 10 * 1_024 * 1_024,
  headersTimeoutMs: 300_000,
  idleTimeoutMs: 120_000,
  maxShortPieces: 10_000,
  maxContainers: 100_000,
  maxUnreadMs: 0,
};

/** An event of a stream has more. */
const MIN_PIECE_BYTES = 32;

type Fetch = typeof globalThis.fetch;
type Chunk = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>;

/**
 * The `fetch` for the SDKs. Follows no redirect, because the key would be sent along. Fails the body when it exceeds a limit or is
 * not valid UTF-8: a lenient decoder would pass changed arguments to a tool.
 */
export function guardedFetch(provider: string, clock: Clock, limits: AnswerLimits, fetch: Fetch): Fetch {
  return async (input, init) => {
    const silent = new AbortController();
    const signal = AbortSignal.any([silent.signal, ...(init?.signal ? [init.signal] : [])]);
    const answer = fetch(input, { ...init, redirect: 'manual', signal }).catch((error: unknown) => {
      throw unreachableError(provider, urlOf(input), error) ?? error;
    });
    const wait = { provider, clock, milliseconds: limits.headersTimeoutMs };
    const response = await withIdleTimeout(answer, wait).catch((error: unknown) => {
      // Ends the request of a provider that was silent; one that has failed already is not changed by it.
      silent.abort();
      throw error;
    });
    if (!response.body) return response;
    const { status, statusText, headers } = response;
    const isOneValue = !isEventStream(headers);
    const guarded = guardedBody(response.body, { provider, clock, limits, isOneValue });
    return new Response(guarded, { status, statusText, headers });
  };
}

/** Some servers send events without their content type, and none sends a JSON body without its own. */
export function isEventStream(headers: Headers): boolean {
  return !(headers.get('content-type') ?? '').toLowerCase().includes('json');
}

interface BodyRules {
  provider: string;
  clock: Clock;
  limits: AnswerLimits;
  isOneValue: boolean;
}

function urlOf(input: Parameters<Fetch>[0]): string {
  return input instanceof Request ? input.url : String(input);
}

function guardedBody(
  body: ReadableStream<Uint8Array>,
  { provider, clock, limits, isOneValue }: BodyRules,
): ReadableStream<Uint8Array> {
  const sizes = new BodySizes(limits, isOneValue);
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const wait = { provider, clock, milliseconds: limits.idleTimeoutMs };
  const fail = (controller: ReadableStreamDefaultController, error: TemperError): void => {
    controller.error(error);
    // The error is already reported; a failure to cancel the connection has no consequence.
    reader.cancel(error).catch(() => undefined);
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = await withIdleTimeout(reader.read(), wait).catch((error: unknown) => error);
      if (chunk instanceof TemperError) return fail(controller, chunk);
      if (chunk instanceof Error) return controller.error(chunk);
      const { done, value } = chunk as Chunk;
      const excess = value === undefined ? undefined : sizes.excessOf(value);
      if (excess !== undefined) return fail(controller, formatError(provider, excess));
      try {
        decoder.decode(value, { stream: !done });
      } catch (error) {
        return fail(controller, formatError(provider, 'sent text that is not UTF-8', 'never', error));
      }
      if (done) return controller.close();
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** What has arrived of one body, compared with its limits. */
class BodySizes {
  readonly #limits: AnswerLimits;
  readonly #nesting: NestingLimit;
  #bytes = 0;
  #pieces = 0;

  constructor(limits: AnswerLimits, isOneValue: boolean) {
    this.#limits = limits;
    this.#nesting = new NestingLimit(limits.maxContainers, isOneValue);
  }

  /** What the provider did, when the next piece of the body exceeds a limit. */
  excessOf(piece: Uint8Array): string | undefined {
    const { maxBytes, maxShortPieces, maxContainers } = this.#limits;
    this.#bytes += piece.byteLength;
    this.#pieces += 1;
    if (this.#bytes > maxBytes) return `sent an answer larger than ${maxBytes} bytes`;
    if (this.#pieces > maxShortPieces && this.#bytes < MIN_PIECE_BYTES * this.#pieces)
      return `sent more than ${maxShortPieces} pieces of less than ${MIN_PIECE_BYTES} bytes on average`;
    return this.#nesting.allows(piece) ? undefined : `sent more than ${maxContainers} lists and objects at once`;
  }
}

interface IdleTimeout {
  provider: string;
  clock: Clock;
  milliseconds: number;
}

/** The result, or TEMPER_MODEL_TIMEOUT when it has not arrived after this time. */
async function withIdleTimeout<T>(result: Promise<T>, { provider, clock, milliseconds }: IdleTimeout): Promise<T> {
  const arrived = new AbortController();
  const timeout = clock.sleep(milliseconds, arrived.signal).then(() => {
    throw new TemperError('TEMPER_MODEL_TIMEOUT', `provider "${provider}" sent nothing for ${milliseconds} ms`, {
      retry: 'backoff',
      details: { provider },
    });
  });
  try {
    return await Promise.race([result, timeout]);
  } finally {
    // If the result wins the race, the timeout's rejection must not become an unhandled rejection.
    timeout.catch(() => undefined);
    arrived.abort('arrived');
  }
}
