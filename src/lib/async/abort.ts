/** Calls `listener` once when the signal aborts: now if it is aborted already. Disposing the result removes the listener. */
export function onAbort(signal: AbortSignal, listener: () => void): Disposable {
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', listener) };
}

/** Resolves when the signal aborts. The listener stays until then: for a race use `abortable`. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}

/**
 * The result of `work`, or a rejection as soon as the signal aborts, so that work that ignores the signal cannot block the caller.
 * Rejects with `errorOf()`, by default with the reason of the signal.
 */
export async function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  errorOf: () => Error = () => signal.reason as Error,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  using _listener = onAbort(signal, () => reject(errorOf()));
  return await Promise.race([work, aborted]);
}
