import { type Clock, LONGEST_TIMER } from './clock.ts';

/** What every call through a port carries. */
export interface Op {
  /** Aborted when the caller no longer wants the answer. */
  readonly signal: AbortSignal;
  /** Monotonic milliseconds (`Clock.monotonic`) by which the answer is worth nothing. */
  readonly deadline: number;
  /** Idempotency key of a mutation: the same key twice is one effect. */
  readonly key: string;
}

export function remainingMilliseconds(op: Op, clock: Clock): number {
  return Math.max(0, op.deadline - clock.monotonic());
}

/**
 * Runs `work` under an operation that ends no later than `milliseconds` from now and never later than its parent.
 * The signal aborts at that deadline; its timer is gone when `work` settles.
 */
export async function withTimeout<T>(
  parent: Op,
  clock: Clock,
  milliseconds: number,
  work: (op: Op) => Promise<T>,
  key = parent.key,
): Promise<T> {
  const remaining = Math.min(milliseconds, remainingMilliseconds(parent, clock));
  const timeout = new AbortController();
  const timer = setTimeout(
    () => {
      timeout.abort(new DOMException(`no answer within ${Math.round(remaining)} ms`, 'TimeoutError'));
    },
    Math.min(remaining, LONGEST_TIMER),
  );
  try {
    const signal = AbortSignal.any([parent.signal, timeout.signal]);
    return await work({ signal, deadline: clock.monotonic() + remaining, key });
  } finally {
    clearTimeout(timer);
  }
}
