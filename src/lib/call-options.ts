import { type Clock, MAX_TIMER_MS } from './clock.ts';

/** Options of every call through a port. */
export interface CallOptions {
  /** Aborted when the caller cancels the call. */
  readonly signal: AbortSignal;
  /** The deadline of the call, in monotonic milliseconds (`Clock.monotonic`); `Infinity` for no deadline. */
  readonly deadline: number;
  /** Idempotency key of a mutation: two calls with the same key have one effect. */
  readonly key: string;
}

export function remainingMs(op: CallOptions, clock: Clock): number {
  return Math.max(0, op.deadline - clock.monotonic());
}

/** Whether a deadline aborted the signal, and not the caller. */
export function abortedByTimeout(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
}

/**
 * Runs `work` with a deadline at most `milliseconds` from now and never later than the deadline of `parent`.
 * The signal aborts at that deadline with a `TimeoutError`. The timer is cleared when `work` settles.
 */
export async function withTimeout<T>(
  parent: CallOptions,
  clock: Clock,
  milliseconds: number,
  work: (op: CallOptions) => Promise<T>,
  key = parent.key,
): Promise<T> {
  const remaining = Math.min(milliseconds, remainingMs(parent, clock));
  const timeout = new AbortController();
  const timer = setTimeout(
    () => {
      timeout.abort(new DOMException(`no response within ${Math.round(remaining)} ms`, 'TimeoutError'));
    },
    Math.min(remaining, MAX_TIMER_MS),
  );
  try {
    const signal = AbortSignal.any([parent.signal, timeout.signal]);
    return await work({ signal, deadline: clock.monotonic() + remaining, key });
  } finally {
    clearTimeout(timer);
  }
}
