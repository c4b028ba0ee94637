import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { remainingMs, type CallOptions } from '../../lib/call-options.ts';
import type { ModelLayer, PipelineOptions } from '../pipeline.ts';

export interface RetryOptions {
  clock: Clock;
  /** Random number from 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  maxAttempts?: number;
  initialWaitMs?: number;
  /** Maximum wait. A call is not retried if the provider's `Retry-After` is longer. */
  maxWaitMs?: number;
  /** Random variation of a wait, as a fraction: 0.2 is ±20 %. */
  jitter?: number;
}

const DEFAULTS = { maxAttempts: 3, initialWaitMs: 300, maxWaitMs: 30_000, jitter: 0.2 };

/** Retries calls with transient failures. Never after the first event was emitted: the consumer may have used it. */
export function retries(options: RetryOptions): ModelLayer {
  const settings = { ...DEFAULTS, ...options };
  return (inner) => ({
    async *stream(request, op) {
      for (let attempt = 1; ; attempt += 1) {
        let started = false;
        try {
          for await (const event of inner.stream(request, op)) {
            started = true;
            yield event;
          }
          return;
        } catch (error) {
          if (started) throw error;
          const notify = reporter(request.model.id, attempt + 1, error, op);
          await waitBefore(attempt + 1, error, op, settings, notify);
        }
      }
    },
    async embed(texts, op) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await inner.embed(texts, op);
        } catch (error) {
          await waitBefore(attempt + 1, error, op, settings);
        }
      }
    },
  });
}

/** Waits before the next attempt; throws the error when no further attempt is allowed. */
async function waitBefore(
  attempt: number,
  error: unknown,
  op: CallOptions,
  settings: RetryOptions & typeof DEFAULTS,
  notify: (waitMs: number) => void = () => undefined,
): Promise<void> {
  const waitMs = attempt > settings.maxAttempts ? undefined : plannedWait(attempt, error, settings);
  if (waitMs === undefined || waitMs >= remainingMs(op, settings.clock)) throw error;
  notify(waitMs);
  try {
    await settings.clock.sleep(waitMs, op.signal);
  } catch {
    throw new TemperError('TEMPER_CANCELLED', 'the call was cancelled while it waited for a retry', {
      cause: error,
    });
  }
}

/** Reports the next attempt to the caller. */
function reporter(model: string, attempt: number, error: unknown, { onRepeat }: PipelineOptions) {
  return (waitMs: number): void => {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    onRepeat?.({ model, attempt, code, milliseconds: Math.round(waitMs) });
  };
}

function plannedWait(attempt: number, error: unknown, settings: RetryOptions & typeof DEFAULTS): number | undefined {
  if (!isTemperError(error) || error.retry === 'never') return undefined;
  const { initialWaitMs, maxWaitMs, jitter, random } = settings;
  const doubled = initialWaitMs * 2 ** (attempt - 2);
  const backoffMs = Math.min(maxWaitMs, doubled * (1 + jitter * (2 * random() - 1)));
  if (error.retry === 'backoff') return backoffMs;
  return error.retry > maxWaitMs ? undefined : Math.max(error.retry, backoffMs);
}
