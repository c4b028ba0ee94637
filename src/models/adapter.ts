import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { remainingMilliseconds, type Op } from '../lib/operation.ts';
import { formatError } from './errors.ts';
import { classify } from './failure.ts';
import type { Model, ModelEvent, ModelRequest } from './port.ts';
import { DEFAULT_LIMITS, guardedFetch, type AnswerLimits } from './transport.ts';

/** Folds the parsed events of one answer into model events. Made anew for every answer. */
export interface Normalizer {
  /** One event of a stream. Throws a TemperError when it is an error or breaks the format. */
  feed(event: Json): ModelEvent[];
  /** The body of an answer that did not come as a stream. */
  whole(body: Json): ModelEvent[];
  /** True when the provider has said that the answer is complete. What follows is not read. */
  readonly complete: boolean;
  /** Tool calls and the one `end`. Throws when the answer stopped before its end. */
  finish(): ModelEvent[];
}

/** What differs from vendor to vendor. */
export interface Wire {
  /** Sends the request through the vendor's SDK and gives the untouched answer. */
  send(request: ModelRequest, model: string, connection: Connection): Promise<Answer>;
  normalizer(provider: string, offeredTools: readonly string[]): Normalizer;
  embed?(texts: string[], connection: Connection): Promise<number[][]>;
}

export interface Connection {
  key: string;
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
}

interface Answer {
  response: Response;
  /** The events of the answer, as the SDK decodes them. */
  events(): AsyncIterable<unknown>;
}

export interface AdapterOptions {
  /** Name of the provider in the configuration; the part of `request.model` before the first slash. */
  provider: string;
  /** Asked before every call, so that a renewed key is used without a restart. */
  key(): Promise<string>;
  clock: Clock;
  limits?: Partial<AnswerLimits>;
  fetch?: typeof globalThis.fetch;
}

/** A Model on top of one wire format: deadline, cancellation, limits, typed errors, one `end`. */
export function adapterModel(wire: Wire, options: AdapterOptions): Model {
  const { provider, clock } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const guarded = guardedFetch(provider, clock, limits, options.fetch ?? globalThis.fetch);
  const connect = async (call: Call): Promise<Connection> => {
    const key = await options.key();
    return { key, fetch: guarded, signal: call.signal };
  };
  return {
    async *stream(request, op) {
      await using call = openCall(provider, op, clock);
      let key = '';
      try {
        const connection = await connect(call);
        key = connection.key;
        const offered = request.tools.map((tool) => tool.name);
        const answer = await sent(wire, request, connection);
        yield* normalized(answer, wire.normalizer(provider, offered), provider);
      } catch (error) {
        throw call.ended() ?? classify(provider, error, clock, key);
      }
    },
    async embed(texts, op) {
      if (!wire.embed)
        throw new TemperError(
          'TEMPER_MODEL_NOT_FOUND',
          `provider "${provider}" has no embeddings; configure one that has`,
        );
      await using call = openCall(provider, op, clock);
      let key = '';
      try {
        const connection = await connect(call);
        key = connection.key;
        const vectors = await wire.embed(texts, connection);
        return vectors.map((vector) => Float32Array.from(vector));
      } catch (error) {
        throw call.ended() ?? classify(provider, error, clock, key);
      }
    },
  };
}

/** Newer models refuse any temperature but their own; such a request is sent once more without one. */
async function sent(wire: Wire, request: ModelRequest, connection: Connection): Promise<Answer> {
  const { temperature, ...plain } = request;
  const model = vendorModel(request.model);
  try {
    return await wire.send(request, model, connection);
  } catch (error) {
    if (temperature === undefined || !refusesTemperature(error)) throw error;
    return wire.send(plain, model, connection);
  }
}

function refusesTemperature(error: unknown): boolean {
  if (!(error instanceof Error) || !('status' in error) || error.status !== 400) return false;
  // OpenAI names the parameter; Anthropic has words only.
  return ('param' in error && error.param === 'temperature') || error.message.includes('temperature');
}

async function* normalized(answer: Answer, normalizer: Normalizer, provider: string): AsyncGenerator<ModelEvent> {
  if (isEventStream(answer.response)) {
    for await (const event of answer.events()) {
      yield* normalizer.feed(event as Json);
      if (normalizer.complete) break;
    }
  } else {
    yield* normalizer.whole(await jsonBody(answer.response, provider));
  }
  yield* normalizer.finish();
}

function isEventStream(response: Response): boolean {
  const type = response.headers.get('content-type') ?? '';
  return !type.toLowerCase().includes('json');
}

async function jsonBody(response: Response, provider: string): Promise<Json> {
  const text = await response.text();
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw formatError(provider, 'sent a body that is not JSON', 'never', error);
  }
}

function vendorModel(model: string): string {
  return model.slice(model.indexOf('/') + 1);
}

/** What a timer of Node can hold, about 24 days. */
const LONGEST_TIMER = 2 ** 31 - 1;

interface Call extends AsyncDisposable {
  signal: AbortSignal;
  /** The error of a call that its caller or its deadline ended. */
  ended(): TemperError | undefined;
}

/** The SDKs end quietly or in their own words when they are aborted; why it happened is known here only. */
function openCall(provider: string, op: Op, clock: Clock): Call {
  const over = new AbortController();
  const done = new AbortController();
  const allowed = Math.min(remainingMilliseconds(op, clock), LONGEST_TIMER);
  const late = (): TemperError =>
    new TemperError('TEMPER_MODEL_TIMEOUT', `provider "${provider}" did not finish within ${Math.round(allowed)} ms`, {
      retry: 'backoff',
      details: { provider },
    });
  if (allowed <= 0) over.abort();
  // Rejects when the call is over before its deadline, which is the ordinary case.
  clock.sleep(allowed, done.signal).then(
    () => over.abort(),
    () => undefined,
  );
  return {
    signal: AbortSignal.any([op.signal, over.signal]),
    ended() {
      if (over.signal.aborted) return late();
      if (!op.signal.aborted) return undefined;
      const reason: unknown = op.signal.reason;
      if (reason instanceof DOMException && reason.name === 'TimeoutError') return late();
      return new TemperError('TEMPER_CANCELLED', `the call to provider "${provider}" was withdrawn`, { cause: reason });
    },
    async [Symbol.asyncDispose]() {
      done.abort();
    },
  };
}
