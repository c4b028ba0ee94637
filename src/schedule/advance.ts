import { occurrencesOf, type ScheduleDefinition, timingDigest } from './definition.ts';
import type { Occurrences } from './occurrences.ts';
import { backoffMs, nextPersistentRun } from './persistent/next-run.ts';

/** A run that has started and not ended. Times in epoch milliseconds. */
export interface ActiveRun {
  readonly due: number;
  /** Id of its message. */
  readonly message: string;
}

/** What is stored about a schedule. Times in epoch milliseconds. */
export interface ScheduleState {
  /** The timing that `next` was computed from. */
  readonly timing: string;
  /** The generation of the last run. */
  readonly generation: number;
  /** Absent: the schedule is never due again. */
  readonly next?: number;
  /** The due time of the last run that started. */
  readonly last?: number;
  readonly lastSuccess?: number;
  readonly active?: ActiveRun;
  /** Runs that failed since the last success. */
  readonly failures: number;
  /** The next run follows the end of the last one. */
  readonly persistent?: true;
  /** Due times without a run: nothing ran in time, or the previous run had not ended. */
  readonly missed: number;
  readonly skipped: number;
}

export type ScheduledRunOutcome = 'completed' | 'failed' | 'excused';

export interface Advance {
  readonly state: ScheduleState;
  /** The due time of the run to start, after the state is stored. */
  readonly run?: number;
}

/** A schedule starts no run after so many failures in a row, until a user resumes or changes it. */
export const MAX_FAILURES = 5;
/** A state that is this far in the future was written by a clock that was wrong. */
const CLOCK_TOLERANCE_MS = 3_600_000;
const MAX_COUNTED = 1_000;

/**
 * What is due at `now`, and the state afterwards. Pure. The state is stored before the run starts: a process that ends in between leaves
 * a due time in `active`, whose message is sent again under the same id.
 */
export function advance(
  definition: ScheduleDefinition,
  before: ScheduleState | undefined,
  now: number,
  messageOf: (due: number) => string,
): Advance {
  return definition.timing.kind === 'Persistent'
    ? advancePersistent(definition, before, now, messageOf)
    : advanceTimed(definition, before, now, messageOf);
}

function advanceTimed(
  definition: ScheduleDefinition,
  before: ScheduleState | undefined,
  now: number,
  messageOf: (due: number) => string,
): Advance {
  const timing = timingDigest(definition);
  if (before === undefined || before.timing !== timing) {
    const since = before === undefined ? Math.min(definition.since ?? now, now) : now;
    const first = occurrencesOf(definition).next(since);
    const started = begin(before, definition, { timing, next: first });
    return since < now ? advanceTimed(definition, started, now, messageOf) : { state: started };
  }
  const state = withoutClockError(resumed(before, definition.generation), definition, now);
  const { next, ...rest } = state;
  if (next === undefined || now < next) return { state };
  const times = occurrencesOf(definition);
  const due = times.latest(now) ?? next;
  const following = times.next(now);
  const moved = following === undefined ? rest : { ...rest, next: following };
  const earlier = countBetween(times, next, due);
  // What is due while the schedule is suspended is not missed.
  if (definition.suspended || isFailing(state)) return { state: moved };
  if (now - due > definition.startingDeadlineMs) return { state: { ...moved, missed: state.missed + earlier + 1 } };
  const missed = state.missed + earlier;
  if (state.active !== undefined) return { state: { ...moved, missed, skipped: state.skipped + 1 } };
  return {
    state: { ...moved, missed, last: due, active: { due, message: messageOf(due) }, generation: definition.generation },
    run: due,
  };
}

/** Nothing is missed or skipped: while a run is active, and while the schedule is suspended, it has no due time. */
function advancePersistent(
  definition: ScheduleDefinition,
  before: ScheduleState | undefined,
  now: number,
  messageOf: (due: number) => string,
): Advance {
  const timing = timingDigest(definition);
  const isKnown = before?.timing === timing;
  const state = isKnown
    ? before
    : { ...begin(before, definition, { timing, next: undefined }), persistent: true as const };
  const { next, ...rest } = state;
  if (state.active !== undefined || definition.suspended) return { state: next === undefined ? state : rest };
  const first = nextPersistentRun(definition, state, { now, toleranceMs: CLOCK_TOLERANCE_MS });
  if (first === undefined) return { state: rest };
  if (now < first) return { state: first === next ? state : { ...rest, next: first } };
  const due = Math.max(first, occurrencesOf(definition).latest(now) ?? first);
  const active = { due, message: messageOf(due) };
  return { state: { ...rest, last: due, active, generation: definition.generation }, run: due };
}

/** The state after the run of this message ended. Unchanged for any other message. */
export function ended(
  state: ScheduleState,
  message: string,
  outcome: ScheduledRunOutcome,
  endedAt: number,
): ScheduleState {
  if (state.active?.message !== message) return state;
  const { active: _, ...rest } = state;
  const failures = failuresAfter(state.failures, outcome);
  const next = state.persistent === true ? { next: endedAt + backoffMs(outcome, failures) } : {};
  const success = outcome === 'completed' ? { lastSuccess: endedAt } : {};
  return { ...rest, ...next, ...success, failures };
}

function failuresAfter(before: number, outcome: ScheduledRunOutcome): number {
  if (outcome === 'completed') return 0;
  return outcome === 'failed' ? before + 1 : before;
}

/** Did so many runs in a row fail that the status says so? */
export function keepsFailing({ failures }: Pick<ScheduleState, 'failures'>): boolean {
  return failures >= MAX_FAILURES;
}

/** Does the schedule start no run because the last ones failed? A persistent one waits longer, and goes on. */
export function isFailing(state: Pick<ScheduleState, 'failures' | 'persistent'>): boolean {
  return keepsFailing(state) && state.persistent !== true;
}

type Counts = Pick<ScheduleState, 'missed' | 'skipped'>;

/** A new or changed schedule. A run that is active stays so, and a change ends the failures. */
function begin(
  before: ScheduleState | undefined,
  { generation }: Pick<ScheduleDefinition, 'generation'>,
  { timing, next }: { timing: string; next: number | undefined },
): ScheduleState {
  const { next: _, persistent: __, ...kept }: Partial<ScheduleState> & Counts = before ?? { missed: 0, skipped: 0 };
  return { ...kept, timing, generation, failures: 0, ...(next === undefined ? {} : { next }) };
}

function resumed(state: ScheduleState, generation: number): ScheduleState {
  return isFailing(state) && state.generation !== generation ? { ...state, generation, failures: 0 } : state;
}

/** A clock that was ahead must not silence the schedule. Due times that repeat have the same messages, which are sent once. */
function withoutClockError(state: ScheduleState, definition: ScheduleDefinition, now: number): ScheduleState {
  const isAhead = state.last === undefined || state.last > now + CLOCK_TOLERANCE_MS;
  const expected = isAhead ? occurrencesOf(definition).next(now) : undefined;
  if (expected === undefined || state.next === undefined || expected >= state.next) return state;
  return { ...state, next: expected };
}

/** Due times from `first` until before `last`, at most MAX_COUNTED. */
function countBetween(times: Occurrences, first: number, last: number): number {
  let count = 0;
  for (let time: number | undefined = first; time !== undefined && time < last && count < MAX_COUNTED; count += 1)
    time = times.next(time);
  return count;
}
