import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { CliIo } from '../io.ts';

const PAUSE_MILLISECONDS = 1_000;

/** Gateways that are being replaced are back within seconds. */
export class Patience {
  readonly #io: Pick<CliIo, 'error' | 'signal'>;
  readonly #attempts: number;
  #left: number;
  #told = false;

  /** `attempts`: in a row, a second apart. */
  constructor(attempts: number, io: Pick<CliIo, 'error' | 'signal'>) {
    this.#attempts = attempts;
    this.#left = attempts;
    this.#io = io;
  }

  /** Something came: all attempts are left. */
  renew(): void {
    this.#left = this.#attempts;
  }

  /** Waits for the next attempt; false when there is none. The first time it is told why, if there is a why. */
  async wait(why?: string): Promise<boolean> {
    this.#left -= 1;
    if (this.#left <= 0) return false;
    if (why !== undefined && !this.#told) this.#io.error(`${why}; it is tried again for up to ${this.#left} s\n`);
    this.#told ||= why !== undefined;
    await systemClock.sleep(PAUSE_MILLISECONDS, this.#io.signal);
    return true;
  }
}

/**
 * The same call again, for so many seconds, while the gateway, or the bus behind it, cannot be reached; it must be one that may be repeated.
 */
export async function insist<T>(
  seconds: number,
  io: Pick<CliIo, 'error' | 'signal'>,
  call: () => Promise<T>,
): Promise<T> {
  const patience = new Patience(seconds, io);
  const until = systemClock.monotonic() + seconds * 1_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const why = systemClock.monotonic() < until ? passing(error) : undefined;
      if (why === undefined || !(await patience.wait(why))) throw error;
    }
  }
}

/** What people are told of a failure that may pass; nothing for any other. */
function passing(error: unknown): string | undefined {
  if (isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) return 'the bus is away';
  const isAway = isTemperError(error, 'TEMPER_GATEWAY_UNREACHABLE') && error.retry === 'backoff';
  return isAway ? 'the gateway does not answer' : undefined;
}
