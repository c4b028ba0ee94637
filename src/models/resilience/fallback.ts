import { isTemperError, TemperError, type Retry } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { Model } from '../port.ts';

/**
 * Tries the model of the request, then each fallback (`provider/model`), until a model starts to answer. Never changes the
 * model in the middle of an answer. Throws TEMPER_MODEL_UNAVAILABLE when all models fail. Embeddings have no fallback: vectors of
 * different models cannot be compared.
 */
export function withFallbacks(model: Model, fallbacks: readonly string[]): Model {
  if (fallbacks.length === 0) return model;
  return {
    async *stream(request, op) {
      const failures: TemperError[] = [];
      const names = [...new Set([request.model, ...fallbacks])];
      for (const name of names) {
        let started = false;
        try {
          for await (const event of model.stream({ ...request, model: name }, op)) {
            started = true;
            yield event;
          }
          return;
        } catch (error) {
          if (started || op.signal.aborted || !isTemperError(error) || !isFallbackAllowed(error)) throw error;
          failures.push(error);
        }
      }
      throw allFailed(names, failures);
    },
    embed: (texts, op) => model.embed(texts, op),
  };
}

/** Only for errors of the provider: another provider cannot help with a cancelled call or an internal error. */
function isFallbackAllowed(error: TemperError): boolean {
  return error.code.startsWith('TEMPER_MODEL_');
}

function allFailed(names: readonly string[], failures: readonly TemperError[]): TemperError {
  const listed = names.map((name, index) => `${name}: ${printable(failures[index]?.message ?? 'failed', 300)}`);
  return new TemperError('TEMPER_MODEL_UNAVAILABLE', `all ${names.length} models failed. ${listed.join('; ')}`, {
    retry: soonest(failures),
    details: { failures: names.map((name, index) => ({ model: name, code: failures[index]?.code })) },
    cause: failures.at(-1),
  });
}

function soonest(failures: readonly TemperError[]): Retry {
  const retries = failures.map((failure) => failure.retry);
  if (retries.includes('backoff')) return 'backoff';
  const waits = retries.filter((retry) => typeof retry === 'number');
  return waits.length > 0 ? Math.min(...waits) : 'never';
}
