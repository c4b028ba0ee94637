import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ModelPipeline, PipelineOptions } from '../pipeline.ts';
import type { ModelEvent } from '../port.ts';
import { openCall } from './call/open-call.ts';
import { ProviderAnswer } from './call/provider-answer.ts';
import { UnreadAnswers } from './call/unread-answers.ts';
import { classifyError } from './classify-error.ts';
import { DEFAULT_LIMITS, guardedFetch, type AnswerLimits } from './guarded-fetch.ts';
import { formatError } from './provider-errors.ts';
import type { Embeddings, ProviderConnection, WireFormat } from './wire-format.ts';

export interface AdapterOptions {
  /** Name of the provider in the configuration; the part of a model's name before the first slash. */
  provider: string;
  /** Called before every request, so that a rotated key is used without a restart. */
  key(): Promise<string>;
  clock: Clock;
  limits?: Partial<AnswerLimits>;
  fetch?: typeof globalThis.fetch;
  /** Aborted when the process ends: answers without a reader are aborted. */
  closing?: AbortSignal;
}

/** The innermost part of a pipeline, for one wire format: adds deadline, cancellation, limits, typed errors and exactly one `end`. */
export function adapterModel(wire: WireFormat, options: AdapterOptions): ModelPipeline {
  const { provider, clock } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const guarded = guardedFetch(provider, clock, limits, options.fetch ?? globalThis.fetch);
  const unread = new UnreadAnswers({ clock, maxMs: limits.maxUnreadMs, closing: options.closing });
  const connect = async (signal: AbortSignal): Promise<ProviderConnection> => {
    const key = await options.key();
    return { key, fetch: guarded, signal };
  };
  return {
    async *stream(request, op) {
      using call = openCall(provider, op, clock);
      call.throwIfEnded();
      const answer = new ProviderAnswer(wire, provider, request);
      const events = answer.events(connect, op, clock);
      let pending: Promise<IteratorResult<ModelEvent>> | undefined;
      try {
        for (;;) {
          pending = events.next();
          const step = await call.during(pending);
          pending = undefined;
          if (step.done === true) return;
          if (step.value.type === 'end') answer.isOpen = false;
          yield step.value;
        }
      } finally {
        answer.left(unread, { events, pending }, op);
      }
    },
    async embed(texts, op) {
      const { embed } = wire;
      if (embed) return embedTexts({ provider, clock, connect, embed }, texts, op);
      throw new TemperError(
        'TEMPER_MODEL_NOT_FOUND',
        `provider "${provider}" has no embeddings; configure a provider with an embeddingModel`,
      );
    },
  };
}

interface EmbeddingDeps {
  provider: string;
  clock: Clock;
  connect: (signal: AbortSignal) => Promise<ProviderConnection>;
  embed: NonNullable<WireFormat['embed']>;
}

async function embedTexts(
  { provider, clock, connect, embed }: EmbeddingDeps,
  texts: string[],
  op: PipelineOptions,
): Promise<Float32Array[]> {
  using call = openCall(provider, op, clock);
  call.throwIfEnded();
  const http = new AbortController();
  let key = '';
  const embedding = async (): Promise<Embeddings> => {
    try {
      const connection = await connect(http.signal);
      key = connection.key;
      op.meter?.sent();
      return await embed(texts, connection);
    } catch (error) {
      const typed = classifyError(error, { provider, key, sent: texts }, clock);
      op.meter?.failed(typed);
      throw typed;
    }
  };
  try {
    const { vectors, inputTokens } = await call.during(embedding());
    op.meter?.counted({ inputTokens, outputTokens: 0, cachedInputTokens: 0 }, true);
    return vectorsOf(vectors, texts.length, provider);
  } finally {
    http.abort();
  }
}

function vectorsOf(vectors: readonly number[][], count: number, provider: string): Float32Array[] {
  const isValid = vectors.length === count && vectors.every((vector) => Array.isArray(vector));
  if (isValid) return vectors.map((vector) => Float32Array.from(vector));
  throw formatError(provider, `sent ${vectors.length} vectors for ${count} texts`);
}
