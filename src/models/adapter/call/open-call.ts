import { abortable } from '../../../lib/async/abort.ts';
import { abortedByTimeout, remainingMs, type CallOptions } from '../../../lib/call-options.ts';
import { type Clock, MAX_TIMER_MS } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';

/** Bounds the caller's part of a call by its deadline and its cancellation. The request itself may outlive it: see `UnreadAnswers`. */
export interface OpenCall extends Disposable {
  /** Throws TEMPER_MODEL_TIMEOUT or TEMPER_CANCELLED when the call has ended. */
  throwIfEnded(): void;
  /** The result of `work`, or one of these errors as soon as the call ends. */
  during<T>(work: Promise<T>): Promise<T>;
}

export function openCall(provider: string, op: CallOptions, clock: Clock): OpenCall {
  const expired = new AbortController();
  const done = new AbortController();
  const allowedMs = Math.min(remainingMs(op, clock), MAX_TIMER_MS);
  if (allowedMs <= 0) expired.abort();
  // Rejects when the call ends before its deadline, which is the normal case.
  clock.sleep(allowedMs, done.signal).then(
    () => expired.abort(),
    () => undefined,
  );
  const timeout = (): TemperError => {
    const message = `provider "${provider}" did not finish within ${Math.round(allowedMs)} ms`;
    return new TemperError('TEMPER_MODEL_TIMEOUT', message, { retry: 'backoff', details: { provider } });
  };
  const endError = (): TemperError => {
    if (expired.signal.aborted || abortedByTimeout(op.signal)) return timeout();
    const cause: unknown = op.signal.reason;
    return new TemperError('TEMPER_CANCELLED', `the call to provider "${provider}" was cancelled`, { cause });
  };
  const ended = AbortSignal.any([op.signal, expired.signal]);
  return {
    throwIfEnded() {
      if (ended.aborted) throw endError();
    },
    during: (work) => abortable(work, ended, endError),
    [Symbol.dispose]: () => done.abort(),
  };
}
