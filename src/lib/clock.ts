import { setTimeout } from 'node:timers/promises';

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
  async sleep(milliseconds, signal) {
    try {
      await setTimeout(Math.min(milliseconds, MAX_TIMER_MS), undefined, { signal });
    } catch {
      throw signal.reason;
    }
  },
};
