import type { Advance, ScheduledRunOutcome, ScheduleState } from '../advance.ts';
import { occurrencesOf, PERSISTENT_STEP_MS, type ScheduleDefinition } from '../definition.ts';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** Milliseconds after the end of a run until the next one, `failures` of which failed in a row. */
export function backoffMs(outcome: ScheduledRunOutcome, failures: number): number {
  if (outcome === 'completed') return 0;
  // A run whose end has a cause outside the agent would end in the same way at once.
  if (outcome === 'excused') return MAX_BACKOFF_MS;
  return Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, failures - 1));
}

/**
 * What is due at `now` of a schedule whose next run follows the end of the last one. Nothing is missed or skipped: while a run is active,
 * and while the schedule is suspended, it has no next due time. Pure.
 */
export function advancePersistent(
  definition: ScheduleDefinition,
  state: ScheduleState,
  { now, toleranceMs }: { now: number; toleranceMs: number },
  messageOf: (due: number) => string,
): Advance {
  const { next, ...rest } = state;
  if (state.active !== undefined || definition.suspended) return { state: next === undefined ? state : rest };
  const times = occurrencesOf(definition);
  const earliest = Math.max(Math.min(next ?? now, now + MAX_BACKOFF_MS), afterLast(state, now, toleranceMs));
  const allowed = times.next(earliest - 1);
  if (allowed === undefined) return { state: rest };
  if (now < allowed) return { state: allowed === next ? state : { ...rest, next: allowed } };
  const due = Math.max(allowed, times.latest(now) ?? allowed);
  const run = { due, message: messageOf(due) };
  return { state: { ...rest, last: due, active: run, generation: definition.generation }, run: due };
}

/** A due time never repeats, unless the clock was far ahead. */
function afterLast({ last }: ScheduleState, now: number, toleranceMs: number): number {
  return last === undefined || last > now + toleranceMs ? 0 : last + PERSISTENT_STEP_MS;
}
