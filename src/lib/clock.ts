/** The source of time. Tests replace it with a fake clock. */
export interface Clock {
  /** Wall-clock time. */
  now(): Date;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonic(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason when aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** The longest delay of a Node timer, in milliseconds: almost 25 days. A timer with a longer delay fires immediately. */
export const MAX_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      };
      const timer = setTimeout(
        () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
        Math.min(milliseconds, MAX_TIMER_MS),
      );
      signal.addEventListener('abort', onAbort, { once: true });
    });
  },
};
