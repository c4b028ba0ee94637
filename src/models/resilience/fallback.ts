import { isTemperError, TemperError, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ModelLayer, ResolvedModel } from '../pipeline.ts';

/** Called when `model` answered in place of `requested`. */
export type FallbackListener = (requested: ResolvedModel, model: ResolvedModel) => void;

/**
 * Tries the model of the request, then each fallback, until a model starts to answer. Never changes the model in the middle of an
 * answer. Throws TEMPER_MODEL_UNAVAILABLE when all models fail, or
 * TEMPER_MODEL_CONTEXT_OVERFLOW when the request was too long for one of them. Embeddings have no fallback: vectors of different models cannot be
 * compared.
 */
export function fallbacks(models: readonly ResolvedModel[], answered?: FallbackListener): ModelLayer {
  if (models.length === 0) return (inner) => inner;
  return (inner) => ({
    async *stream(request, op) {
      const failures: TemperError[] = [];
      const candidates = unique([request.model, ...models]);
      for (const model of candidates) {
        let started = false;
        const code = failures.at(-1)?.code;
        if (code !== undefined) op.onRepeat?.({ model: model.id, attempt: 1, code, milliseconds: 0 });
        try {
          for await (const event of inner.stream({ ...request, model }, op)) {
            started = true;
            if (event.type === 'end' && model !== request.model) answered?.(request.model, model);
            yield event;
          }
          return;
        } catch (error) {
          if (started || op.signal.aborted || !isTemperError(error) || !isFallbackAllowed(error)) throw error;
          failures.push(error);
        }
      }
      throw allFailed(candidates, failures);
    },
    embed: (texts, op) => inner.embed(texts, op),
  });
}

function unique(models: readonly ResolvedModel[]): ResolvedModel[] {
  return models.filter(({ id }, index) => models.findIndex((other) => other.id === id) === index);
}

/** Only for errors of the provider: another provider cannot help with a cancelled call or an internal error. */
function isFallbackAllowed(error: TemperError): boolean {
  return error.code.startsWith('TEMPER_MODEL_');
}

function allFailed(models: readonly ResolvedModel[], failures: readonly TemperError[]): TemperError {
  const listed = models.map(({ id }, index) => `${id}: ${printable(failures[index]?.message ?? 'failed', 300)}`);
  // The model that refused the length may answer a shorter request, which the agent loop then sends.
  const isTooLong = failures.some((failure) => isTemperError(failure, 'TEMPER_MODEL_CONTEXT_OVERFLOW'));
  const code = isTooLong ? 'TEMPER_MODEL_CONTEXT_OVERFLOW' : 'TEMPER_MODEL_UNAVAILABLE';
  return new TemperError(code, `all ${models.length} models failed. ${listed.join('; ')}`, {
    retry: soonest(failures),
    details: { failures: models.map(({ id }, index) => ({ model: id, code: failures[index]?.code })) },
    cause: failures.at(-1),
  });
}

function soonest(failures: readonly TemperError[]): Retry {
  const retries = failures.map((failure) => failure.retry);
  if (retries.includes('backoff')) return 'backoff';
  const waits = retries.filter((retry) => typeof retry === 'number');
  return waits.length > 0 ? Math.min(...waits) : 'never';
}
