import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { CliIo } from '../io.ts';

const RETRY_MS = 1_000;

/** Limits the number of retries while a gateway is being replaced, which takes seconds. */
export class RetryBudget {
  readonly #io: Pick<CliIo, 'error' | 'signal'>;
  readonly #attempts: number;
  #left: number;
  #reported = false;

  /** `attempts`: maximum of consecutive attempts, one second apart. */
  constructor(attempts: number, io: Pick<CliIo, 'error' | 'signal'>) {
    this.#attempts = attempts;
    this.#left = attempts;
    this.#io = io;
  }

  /** Resets the budget after a success. */
  reset(): void {
    this.#left = this.#attempts;
  }

  /** Waits for the next attempt; false when no attempts are left. Prints the first `reason` that is given. */
  async wait(reason?: string): Promise<boolean> {
    this.#left -= 1;
    if (this.#left <= 0) return false;
    if (reason !== undefined && !this.#reported) this.#io.error(`${reason}; retrying for up to ${this.#left} s\n`);
    this.#reported ||= reason !== undefined;
    await systemClock.sleep(RETRY_MS, this.#io.signal);
    return true;
  }
}

/**
 * Repeats a call for up to `seconds` while the gateway, or NATS behind it, is unavailable. The call must be idempotent. Throws the
 * last error; one of NATS then names what to check.
 */
export async function withRetry<T>(
  seconds: number,
  io: Pick<CliIo, 'error' | 'signal'>,
  call: () => Promise<T>,
): Promise<T> {
  const retries = new RetryBudget(seconds, io);
  const until = systemClock.monotonic() + seconds * 1_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const reason = transientReason(error);
      if (reason === undefined) throw error;
      const isLast = systemClock.monotonic() >= until || !(await retries.wait(reason));
      if (isLast) throw withNextStep(error, seconds);
    }
  }
}

/** The errors of an unavailable gateway name the next step themselves. */
function withNextStep(error: unknown, seconds: number): unknown {
  if (!isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) return error;
  const message = `${error.message}; it did not respond to repeated attempts within ${seconds} s. \`temper check\` shows whether the StatefulSet of NATS is ready; send the message again when it is`;
  return new TemperError(error.code, message, { cause: error, retry: error.retry });
}

/** A description of a transient failure for the user; undefined for any other error. */
function transientReason(error: unknown): string | undefined {
  if (isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) return 'NATS is unavailable';
  const isUnavailable = isTemperError(error, 'TEMPER_GATEWAY_UNREACHABLE') && error.retry === 'backoff';
  return isUnavailable ? 'the gateway does not respond' : undefined;
}
