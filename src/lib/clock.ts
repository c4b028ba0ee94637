import { onAbort } from './async/abort.ts';

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
  // Not the one of `node:timers/promises`, which makes an error with a stack for each that is aborted: streams sleep once per event.
  sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const timer = setTimeout(
        () => {
          listener[Symbol.dispose]();
          resolve();
        },
        Math.min(milliseconds, MAX_TIMER_MS),
      );
      const listener = onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    });
  },
};
