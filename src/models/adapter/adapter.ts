import { type Clock, MAX_TIMER_MS } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { remainingMs, type CallOptions } from '../../lib/call-options.ts';
import { formatError } from './provider-errors.ts';
import { classifyError } from './classify-error.ts';
import type { ModelPipeline, ResolvedRequest } from '../pipeline.ts';
import type { ModelEvent, ModelInput } from '../port.ts';
import { DEFAULT_LIMITS, guardedFetch, type AnswerLimits } from './guarded-fetch.ts';

/** Converts the parsed wire events of one answer to model events. One instance per answer. */
export interface AnswerNormalizer {
  /** Handles one event of a stream. Throws a TemperError for an error event or an invalid event. */
  feed(event: Json): ModelEvent[];
  /** Handles the JSON body of an answer that was not streamed. */
  readBody(body: Json): ModelEvent[];
  /** True when the provider has marked the answer as complete. The rest of the stream is not read. */
  readonly isComplete: boolean;
  /** Returns the tool calls and the one `end` event. Throws when the answer ended before it was complete. */
  finish(): ModelEvent[];
}

/** The vendor-specific part of an adapter. */
export interface WireFormat {
  /** Sends the request with the vendor's SDK and returns the raw response. */
  send(request: ModelInput, model: string, connection: ProviderConnection): Promise<WireResponse>;
  normalizer(provider: string, offeredTools: readonly string[]): AnswerNormalizer;
  embed?(texts: string[], connection: ProviderConnection): Promise<number[][]>;
}

export interface ProviderConnection {
  key: string;
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
}

interface WireResponse {
  response: Response;
  /** The events of the response, as the SDK decodes them. */
  events(): AsyncIterable<unknown>;
}

export interface AdapterOptions {
  /** Name of the provider in the configuration; the part of a model's name before the first slash. */
  provider: string;
  /** Called before every request, so that a rotated key is used without a restart. */
  key(): Promise<string>;
  clock: Clock;
  limits?: Partial<AnswerLimits>;
  fetch?: typeof globalThis.fetch;
}

/** The innermost part of a pipeline, for one wire format: adds deadline, cancellation, limits, typed errors and exactly one `end`. */
export function adapterModel(wire: WireFormat, options: AdapterOptions): ModelPipeline {
  const { provider, clock } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const guarded = guardedFetch(provider, clock, limits, options.fetch ?? globalThis.fetch);
  const connect = async (call: OpenCall): Promise<ProviderConnection> => {
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
        const answer = await sendRequest(wire, request, connection);
        yield* normalizedEvents(answer, wire.normalizer(provider, offered), provider);
      } catch (error) {
        throw call.ended() ?? classifyError(error, { provider, key, sent: request as unknown as Json }, clock);
      }
    },
    async embed(texts, op) {
      if (!wire.embed)
        throw new TemperError(
          'TEMPER_MODEL_NOT_FOUND',
          `provider "${provider}" has no embeddings; configure a provider with an embeddingModel`,
        );
      await using call = openCall(provider, op, clock);
      let key = '';
      try {
        const connection = await connect(call);
        key = connection.key;
        const vectors = await wire.embed(texts, connection);
        return vectors.map((vector) => Float32Array.from(vector));
      } catch (error) {
        throw call.ended() ?? classifyError(error, { provider, key, sent: texts }, clock);
      }
    },
  };
}

/** Newer models reject every temperature except their default; the request is then sent once more without a temperature. */
async function sendRequest(
  wire: WireFormat,
  request: ResolvedRequest,
  connection: ProviderConnection,
): Promise<WireResponse> {
  const { temperature, ...plain } = request;
  const { model } = request.model;
  try {
    return await wire.send(request, model, connection);
  } catch (error) {
    if (temperature === undefined || !refusesTemperature(error)) throw error;
    return wire.send(plain, model, connection);
  }
}

function refusesTemperature(error: unknown): boolean {
  if (!(error instanceof Error) || !('status' in error) || error.status !== 400) return false;
  // OpenAI reports the parameter; Anthropic only has a message.
  return ('param' in error && error.param === 'temperature') || error.message.includes('temperature');
}

async function* normalizedEvents(
  answer: WireResponse,
  normalizer: AnswerNormalizer,
  provider: string,
): AsyncGenerator<ModelEvent> {
  if (isEventStream(answer.response)) {
    for await (const event of answer.events()) {
      yield* normalizer.feed(event as Json);
      if (normalizer.isComplete) break;
    }
  } else {
    yield* normalizer.readBody(await jsonBody(answer.response, provider));
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

interface OpenCall extends AsyncDisposable {
  signal: AbortSignal;
  /** The error if the caller cancelled the call or its deadline passed. */
  ended(): TemperError | undefined;
}

/** Tracks why a call was aborted: the SDKs end silently or with their own errors, without the reason. */
function openCall(provider: string, op: CallOptions, clock: Clock): OpenCall {
  const expired = new AbortController();
  const done = new AbortController();
  const allowedMs = Math.min(remainingMs(op, clock), MAX_TIMER_MS);
  const timeoutError = (): TemperError =>
    new TemperError(
      'TEMPER_MODEL_TIMEOUT',
      `provider "${provider}" did not finish within ${Math.round(allowedMs)} ms`,
      {
        retry: 'backoff',
        details: { provider },
      },
    );
  if (allowedMs <= 0) expired.abort();
  // Rejects when the call ends before its deadline, which is the normal case.
  clock.sleep(allowedMs, done.signal).then(
    () => expired.abort(),
    () => undefined,
  );
  return {
    signal: AbortSignal.any([op.signal, expired.signal]),
    ended() {
      if (expired.signal.aborted) return timeoutError();
      if (!op.signal.aborted) return undefined;
      const reason: unknown = op.signal.reason;
      if (reason instanceof DOMException && reason.name === 'TimeoutError') return timeoutError();
      return new TemperError('TEMPER_CANCELLED', `the call to provider "${provider}" was cancelled`, { cause: reason });
    },
    async [Symbol.asyncDispose]() {
      done.abort();
    },
  };
}
