import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { remainingMilliseconds, type Op } from '../lib/operation.ts';
import type { Model } from './port.ts';

export interface RetryOptions {
  clock: Clock;
  /** From 0 up to 1. */
  random: () => number;
  attempts?: number;
  firstWaitMilliseconds?: number;
  /** Also the longest wait a provider may ask for; one that asks for more is given up. */
  longestWaitMilliseconds?: number;
  /** Share by which a wait may be longer or shorter than planned. */
  jitter?: number;
}

const DEFAULTS = { attempts: 3, firstWaitMilliseconds: 300, longestWaitMilliseconds: 30_000, jitter: 0.2 };

/** Repeats calls whose failure may pass. Never once an event was handed on: what has been read cannot be taken back. */
export function withRetries(model: Model, options: RetryOptions): Model {
  const settings = { ...DEFAULTS, ...options };
  return {
    async *stream(request, op) {
      for (let attempt = 1; ; attempt += 1) {
        let begun = false;
        try {
          for await (const event of model.stream(request, op)) {
            begun = true;
            yield event;
          }
          return;
        } catch (error) {
          if (begun) throw error;
          await waitBefore(attempt + 1, error, op, settings);
        }
      }
    },
    async embed(texts, op) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await model.embed(texts, op);
        } catch (error) {
          await waitBefore(attempt + 1, error, op, settings);
        }
      }
    },
  };
}

/** Waits until the attempt may be made, or throws the error when it will not be. */
async function waitBefore(
  attempt: number,
  error: unknown,
  op: Op,
  settings: RetryOptions & typeof DEFAULTS,
): Promise<void> {
  const wait = attempt > settings.attempts ? undefined : plannedWait(attempt, error, settings);
  if (wait === undefined || wait >= remainingMilliseconds(op, settings.clock)) throw error;
  try {
    await settings.clock.sleep(wait, op.signal);
  } catch {
    throw new TemperError('TEMPER_CANCELLED', 'the call was withdrawn while it waited to be repeated', {
      cause: error,
    });
  }
}

function plannedWait(attempt: number, error: unknown, settings: RetryOptions & typeof DEFAULTS): number | undefined {
  if (!isTemperError(error) || error.retry === 'never') return undefined;
  const { firstWaitMilliseconds, longestWaitMilliseconds, jitter, random } = settings;
  const doubled = firstWaitMilliseconds * 2 ** (attempt - 2);
  const own = Math.min(longestWaitMilliseconds, doubled * (1 + jitter * (2 * random() - 1)));
  if (error.retry === 'backoff') return own;
  return error.retry > longestWaitMilliseconds ? undefined : Math.max(error.retry, own);
}
