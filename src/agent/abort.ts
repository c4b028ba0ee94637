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
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal, subject: string): Promise<T> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = (): void => reject(abortError(signal, subject));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}
