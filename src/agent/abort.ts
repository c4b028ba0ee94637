import { abortable } from '../lib/async/abort.ts';
import { abortedByTimeout } from '../lib/call-options.ts';
import { TemperError } from '../lib/errors.ts';

/** The error for an aborted signal: TEMPER_TIMEOUT after its deadline, otherwise TEMPER_CANCELLED. */
function abortError(signal: AbortSignal, subject: string): TemperError {
  const reason: unknown = signal.reason;
  return abortedByTimeout(signal)
    ? new TemperError('TEMPER_TIMEOUT', `${subject} did not finish in time`, { cause: reason })
    : new TemperError('TEMPER_CANCELLED', `${subject} was cancelled`, { cause: reason });
}

/** Returns the result of `work`, or rejects as soon as the signal aborts, so that work that ignores its signal cannot block the caller. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal, subject: string): Promise<T> {
  return abortable(work, signal, () => abortError(signal, subject));
}
