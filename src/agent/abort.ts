import { TemperError } from '../lib/errors.ts';

/** Why work under this signal ended: TEMPER_TIMEOUT at its deadline, else TEMPER_CANCELLED. */
function endedBy(signal: AbortSignal, what: string): TemperError {
  const reason: unknown = signal.reason;
  const late = reason instanceof DOMException && reason.name === 'TimeoutError';
  return late
    ? new TemperError('TEMPER_TIMEOUT', `${what} did not end in time`, { cause: reason })
    : new TemperError('TEMPER_CANCELLED', `${what} was withdrawn`, { cause: reason });
}

/** `work`, or a rejection as soon as the signal aborts: work that ignores its signal must not hold its caller. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal, what: string): Promise<T> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = (): void => reject(endedBy(signal, what));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
}
