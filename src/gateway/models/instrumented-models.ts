import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Model, ModelEvent, ModelRequest } from '../../models/port.ts';
import { ATTRIBUTES, startSpan, type OpenSpan, SPANS } from '../../telemetry/spans.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import type { GatewayModelSet } from './metered-models.ts';

export interface ModelLabels {
  provider: string;
  model: string;
}

export interface ModelMetricsDeps {
  clock: Clock;
  metrics: GatewayMetrics;
  /** Labels of a real `provider/model`; the set of values is bounded for any input. */
  labelsOf: (resolved: string) => ModelLabels;
}

/** The models, with metrics and one span per provider call, which records the responding model and its usage. */
export function withModelMetrics(models: GatewayModelSet, deps: ModelMetricsDeps): GatewayModelSet {
  const model: Model = {
    stream: (request, op) => instrumentedStream(models, deps, request, op),
    async embed(texts, op) {
      const call = new CallMetrics(deps, models.embedding, op);
      try {
        const vectors = await models.model.embed(texts, op);
        call.outcome = 'ok';
        return vectors;
      } catch (error) {
        call.failed(error);
        throw error;
      } finally {
        call.end();
      }
    },
  };
  return { ...models, model };
}

async function* instrumentedStream(
  models: GatewayModelSet,
  deps: ModelMetricsDeps,
  request: ModelRequest,
  op: CallOptions,
): AsyncGenerator<ModelEvent> {
  const resolved = models.resolve(request.model);
  const call = new CallMetrics(deps, resolved, op);
  const span = openSpan(resolved);
  try {
    for await (const event of models.model.stream(request, op)) {
      if (event.type === 'end') {
        call.outcome = 'ok';
        call.used(event, models.costOf(resolved, event.usage));
        span.set({
          [ATTRIBUTES.responseModel]: event.model.slice(0, 128),
          [ATTRIBUTES.finishReasons]: [event.stopReason],
          [ATTRIBUTES.inputTokens]: event.usage.inputTokens,
          [ATTRIBUTES.outputTokens]: event.usage.outputTokens,
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

function openSpan(resolved: string): OpenSpan {
  const slash = resolved.indexOf('/');
  return startSpan(SPANS.chat(resolved.slice(slash + 1)), {
    kind: 'CLIENT',
    attributes: {
      [ATTRIBUTES.operation]: 'chat',
      [ATTRIBUTES.provider]: resolved.slice(0, Math.max(0, slash)),
      [ATTRIBUTES.requestModel]: resolved.slice(slash + 1),
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

  constructor(deps: ModelMetricsDeps, resolved: string, { signal }: CallOptions) {
    this.#deps = deps;
    this.#labels = deps.labelsOf(resolved);
    this.#signal = signal;
    this.#started = deps.clock.monotonic();
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
    const { clock, metrics } = this.#deps;
    metrics.count('temper_model_requests_total', { ...this.#labels, outcome: this.outcome });
    const seconds = (clock.monotonic() - this.#started) / 1_000;
    metrics.observe('temper_model_duration_seconds', { ...this.#labels }, seconds);
  }
}

/** Normalizes untrusted numbers of a provider: a counter must not decrease. */
function countable(amount: number): number {
  return Number.isFinite(amount) ? Math.max(0, amount) : 0;
}
