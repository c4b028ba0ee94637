import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelLayer, ModelPipeline, ResolvedModel, ResolvedRequest } from '../../models/pipeline.ts';
import type { ModelEvent } from '../../models/port.ts';
import { costInMicros } from '../../models/price.ts';
import { ATTRIBUTES, startSpan, type OpenSpan, SPANS } from '../../telemetry/spans.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';

export interface ModelLabels {
  provider: string;
  model: string;
}

export interface ModelMetricsDeps {
  clock: Clock;
  metrics: GatewayMetrics;
  /** Labels of a model; the set of values is bounded for any input. Undefined is the embedding model of a gateway that has none. */
  labelsOf: (model: ResolvedModel | undefined) => ModelLabels;
  /** The model behind `embed`. */
  embedding: ResolvedModel | undefined;
}

/** Adds metrics and one span per provider call, which records the responding model and its usage. */
export function modelMetrics(deps: ModelMetricsDeps): ModelLayer {
  return (inner) => ({
    stream: (request, op) => instrumentedStream(inner, deps, request, op),
    async embed(texts, op) {
      const call = new CallMetrics(deps, deps.embedding, op);
      try {
        const vectors = await inner.embed(texts, op);
        call.outcome = 'ok';
        return vectors;
      } catch (error) {
        call.failed(error);
        throw error;
      } finally {
        call.end();
      }
    },
  });
}

async function* instrumentedStream(
  inner: ModelPipeline,
  deps: ModelMetricsDeps,
  request: ResolvedRequest,
  op: CallOptions,
): AsyncGenerator<ModelEvent> {
  const resolved = request.model;
  const call = new CallMetrics(deps, resolved, op);
  const span = openSpan(resolved);
  try {
    for await (const event of inner.stream(request, op)) {
      call.received();
      if (event.type === 'end') {
        call.outcome = 'ok';
        call.used(event, costInMicros(resolved.price, event.usage));
        span.set({
          [ATTRIBUTES.responseModel]: event.model.slice(0, 128),
          [ATTRIBUTES.finishReasons]: [event.stopReason],
          [ATTRIBUTES.inputTokens]: event.usage.inputTokens,
          [ATTRIBUTES.outputTokens]: event.usage.outputTokens,
          [ATTRIBUTES.cachedInputTokens]: event.usage.cachedInputTokens,
          [ATTRIBUTES.cacheCreationInputTokens]: event.usage.cacheCreationInputTokens ?? 0,
        });
      }
      yield event;
    }
  } catch (error) {
    call.failed(error);
    throw error;
  } finally {
    span.end(call.outcome === 'ok' ? undefined : call.outcome);
    call.end();
  }
}

function openSpan({ provider, model }: ResolvedModel): OpenSpan {
  return startSpan(SPANS.chat(model), {
    kind: 'CLIENT',
    attributes: {
      [ATTRIBUTES.operation]: 'chat',
      [ATTRIBUTES.provider]: provider,
      [ATTRIBUTES.requestModel]: model,
    },
  });
}

/** Metrics of one call. */
class CallMetrics {
  /** `ok`, `cancelled` or an error code. A reader that stops early has cancelled the call. */
  outcome = 'cancelled';
  readonly #deps: ModelMetricsDeps;
  readonly #labels: ModelLabels;
  readonly #signal: AbortSignal;
  readonly #started: number;
  #hasReceived = false;

  constructor(deps: ModelMetricsDeps, model: ResolvedModel | undefined, { signal }: CallOptions) {
    this.#deps = deps;
    this.#labels = deps.labelsOf(model);
    this.#signal = signal;
    this.#started = deps.clock.monotonic();
  }

  /** Call with each event; the first one is measured. */
  received(): void {
    if (this.#hasReceived) return;
    this.#hasReceived = true;
    this.#deps.metrics.observe('temper_model_first_event_seconds', { ...this.#labels }, this.#seconds());
  }

  used({ usage }: Extract<ModelEvent, { type: 'end' }>, costMicros: number): void {
    const { metrics } = this.#deps;
    for (const [direction, tokens] of [
      ['input', usage.inputTokens],
      ['output', usage.outputTokens],
    ] as const) {
      metrics.count('temper_model_tokens_total', { ...this.#labels, direction }, countable(tokens));
    }
    metrics.count('temper_model_cost_dollars_total', { ...this.#labels }, countable(costMicros) / 1e6);
  }

  failed(error: unknown): void {
    if (this.#signal.aborted) return;
    this.outcome = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
  }

  end(): void {
    const { metrics } = this.#deps;
    metrics.count('temper_model_requests_total', { ...this.#labels, outcome: this.outcome });
    metrics.observe('temper_model_duration_seconds', { ...this.#labels }, this.#seconds());
  }

  #seconds(): number {
    return (this.#deps.clock.monotonic() - this.#started) / 1_000;
  }
}

/** Normalizes untrusted numbers of a provider: a counter must not decrease. */
function countable(amount: number): number {
  return Number.isFinite(amount) ? Math.max(0, amount) : 0;
}
