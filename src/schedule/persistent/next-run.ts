import { occurrencesOf, PERSISTENT_STEP_MS, type ScheduleDefinition } from '../definition.ts';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** Milliseconds from the end of a run to the next one; `failures` runs failed in a row. */
export function backoffMs(outcome: 'completed' | 'failed' | 'excused', failures: number): number {
  if (outcome === 'completed') return 0;
  // A run whose end has a cause outside the agent would end in the same way at once.
  if (outcome === 'excused') return MAX_BACKOFF_MS;
  return Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, failures - 1));
}

/** The due time that the end of the last run gave, and the last due time. Epoch milliseconds. */
interface LastRun {
  readonly next?: number | undefined;
  readonly last?: number | undefined;
}

/**
 * When the next run is due, outside the quiet hours; undefined when it never is. A due time never repeats, unless the clock was ahead by
 * more than the tolerance.
 */
export function nextPersistentRun(
  definition: ScheduleDefinition,
  { next, last }: LastRun,
  { now, toleranceMs }: { now: number; toleranceMs: number },
): number | undefined {
  const afterLast = last === undefined || last > now + toleranceMs ? 0 : last + PERSISTENT_STEP_MS;
  const earliest = Math.max(Math.min(next ?? now, now + MAX_BACKOFF_MS), afterLast);
  return occurrencesOf(definition).next(earliest - 1);
}
