/** Time as the engine sees it, so that a test can hold it still. */
export interface Clock {
  /** Wall-clock time. */
  now(): Date;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonic(): number;
  /** Resolves after `milliseconds`; rejects with the signal's reason when aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** Milliseconds a timer of the platform can wait, almost 25 days. One set for longer would fire at once. */
export const LONGEST_TIMER = 2_147_483_647;

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
        Math.min(milliseconds, LONGEST_TIMER),
      );
      signal.addEventListener('abort', onAbort, { once: true });
    });
  },
};
