import type { Clock } from '../../../lib/clock.ts';
import type { Json } from '../../../lib/json.ts';
import type { PipelineOptions, ResolvedRequest } from '../../pipeline.ts';
import type { ModelEvent } from '../../port.ts';
import { classifyError } from '../classify-error.ts';
import { isEventStream } from '../guarded-fetch.ts';
import { formatError } from '../provider-errors.ts';
import type { AnswerNormalizer, ProviderConnection, WireFormat, WireResponse } from '../wire-format.ts';
import type { AbandonedAnswer, UnreadAnswers } from './unread-answers.ts';

/** One answer of a provider, which may outlive its reader. */
export class ProviderAnswer {
  /** The provider has not ended its answer. */
  isOpen = true;
  readonly #wire: WireFormat;
  readonly #provider: string;
  readonly #request: ResolvedRequest;
  readonly #http = new AbortController();
  readonly #normalizer: AnswerNormalizer;

  constructor(wire: WireFormat, provider: string, request: ResolvedRequest) {
    this.#wire = wire;
    this.#provider = provider;
    this.#request = request;
    const offered = request.tools.map((tool) => tool.name);
    this.#normalizer = wire.normalizer(provider, offered);
  }

  /** Sends the request and converts the answer. Throws typed errors. */
  async *events(
    connect: (signal: AbortSignal) => Promise<ProviderConnection>,
    op: PipelineOptions,
    clock: Clock,
  ): AsyncGenerator<ModelEvent> {
    let key = '';
    try {
      const connection = await connect(this.#http.signal);
      key = connection.key;
      const answer = await sendRequest(this.#wire, this.#request, connection, op);
      yield* normalizedEvents(answer, this.#normalizer, this.#provider);
    } catch (error) {
      const sent = this.#request as unknown as Json;
      const typed = classifyError(error, { provider: this.#provider, key, sent }, clock);
      // Before the failure: what the provider has counted is not free.
      if (this.#normalizer.usage !== undefined) op.meter?.counted(this.#normalizer.usage, false);
      op.meter?.failed(typed);
      throw typed;
    } finally {
      this.isOpen = false;
    }
  }

  /** Call when the reader reads no further event. */
  left(unread: UnreadAnswers, rest: Pick<AbandonedAnswer, 'events' | 'pending'>, op: PipelineOptions): void {
    const normalizer = this.#normalizer;
    if (this.isOpen) {
      unread.leave({ ...rest, usage: () => normalizer.usage, abort: () => this.#http.abort() }, op);
      return;
    }
    if (normalizer.usage !== undefined) op.meter?.counted(normalizer.usage, false);
    void rest.events.return?.().catch(() => undefined);
  }
}

/** Newer models reject every temperature except their default; the request is then sent once more without a temperature. */
async function sendRequest(
  wire: WireFormat,
  request: ResolvedRequest,
  connection: ProviderConnection,
  { meter }: PipelineOptions,
): Promise<WireResponse> {
  const { temperature, ...plain } = request;
  const { model } = request.model;
  meter?.sent();
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
  if (isEventStream(answer.response.headers)) {
    for await (const event of answer.events()) {
      yield* normalizer.feed(event as Json);
      if (normalizer.isComplete) break;
    }
  } else {
    yield* normalizer.readBody(await jsonBody(answer.response, provider));
  }
  yield* normalizer.finish();
}

async function jsonBody(response: Response, provider: string): Promise<Json> {
  const text = await response.text();
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw formatError(provider, 'sent a body that is not JSON', 'never', error);
  }
}
