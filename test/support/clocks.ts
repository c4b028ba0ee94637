/** A clock that moves only when the test moves it. */
export { FakeClock } from '../../src/lib/fake-clock.testing.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';

/** The system clock with another wall-clock time, in epoch milliseconds. */
export function clockAt(now: () => number): Clock {
  return { ...systemClock, now: () => new Date(now()) };
}

/** The system clock with pauses of these lengths shortened to `shortMs`. */
export function clockWithShortPauses(pausesMs: ReadonlySet<number>, shortMs: number): Clock {
  return {
    ...systemClock,
    sleep: (milliseconds, signal) => systemClock.sleep(pausesMs.has(milliseconds) ? shortMs : milliseconds, signal),
  };
}
