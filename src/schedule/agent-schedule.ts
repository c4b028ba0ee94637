import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { occurrencesOf, parseTiming, type ScheduleDefinition, type Timing } from './definition.ts';
import type { Occurrences } from './occurrences.ts';

/** Who stopped a schedule, and why. */
export interface Pause {
  /** As the client of the user states it. */
  readonly by: string;
  readonly reason: string;
  /** RFC 3339. */
  readonly since: string;
}

/** A schedule that an agent made for itself. */
export interface OwnSchedule {
  /** Derives from the call that made it. */
  readonly id: string;
  /** Unique among those of the agent. */
  readonly name: string;
  /** As the agent wrote it: a cron expression, `every 10m`, or a time for one run, as RFC 3339. */
  readonly times: string;
  readonly timeZone: string;
  readonly message: string;
  /** The session that all runs continue. Absent: each run has a session of its own. */
  readonly session?: string;
  /** The agent wrote it in a session with untrusted content. */
  readonly tainted?: boolean;
  /** The largest number of runs in one hour. */
  readonly runsPerHour: number;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly pause?: Pause;
  /** How often users resumed it, which ends its failures. */
  readonly resumed?: number;
}

export const MAX_SCHEDULES_PER_AGENT = 50;
export const MAX_SCHEDULES_PER_NAMESPACE = 500;
export const MAX_MESSAGE_CHARACTERS = 2_048;
/** UTF-8 bytes of all schedules of one agent, and of one namespace, as JSON. */
export const MAX_BYTES_PER_AGENT = 64 * 1_024;
export const MAX_BYTES_PER_NAMESPACE = 1_024 * 1_024;
const MAX_AHEAD_MS = 366 * 86_400_000;
const MIN_AHEAD_MS = 1_000;
const STARTING_DEADLINE_MS = 3_600_000;
const HOUR_MS = 3_600_000;
/** More than the runs of two hours: the busiest hour of an expression begins with one of them. */
const COUNTED_RUNS = 130;
const TIMESTAMP = /^([0-9]{4}-[0-9]{2}-([0-9]{2}))T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$/;

/** The times of a schedule that an agent writes. Throws TEMPER_MANIFEST_INVALID. */
function parseTimes(times: string, timeZone: string): Timing {
  const [, date, day] = TIMESTAMP.exec(times) ?? [];
  if (date === undefined) return parseTiming(times, timeZone);
  const at = Date.parse(times);
  // The runtime reads 31 February as 3 March.
  const isDay = new Date(`${date}T00:00:00Z`).getUTCDate() === Number(day);
  if (!Number.isNaN(at) && isDay) return { kind: 'Once', at };
  throw invalid(`"${printable(times, 64)}" is not a time`);
}

/** The largest number of runs in one hour, and the first one. Throws TEMPER_MANIFEST_INVALID for times that no schedule of an agent may have. */
export function plannedRuns(
  { times, timeZone }: Pick<OwnSchedule, 'times' | 'timeZone'>,
  key: string,
  now: number,
): { runsPerHour: number; first: number } {
  const timing = parseTimes(times, timeZone);
  if (timing.kind === 'Once' && timing.at > now + MAX_AHEAD_MS) throw invalid('the time is more than a year ahead');
  if (timing.kind === 'Once' && timing.at < now + MIN_AHEAD_MS) {
    throw invalid(`the time has passed: now is ${new Date(now).toISOString()}`);
  }
  const occurrences = occurrencesOf(definitionOf({ times, timeZone }, key));
  const first = occurrences.next(now);
  if (first === undefined) throw invalid('no run is ever due');
  if (timing.kind === 'Once') return { runsPerHour: 1, first };
  if (timing.kind === 'Interval') return { runsPerHour: Math.ceil(HOUR_MS / timing.every), first };
  return { runsPerHour: busiestHour(occurrences, now), first };
}

/** What the scheduler needs; the caller adds whether it is suspended, and its generation. */
export function definitionOf(
  { times, timeZone, createdAt }: Pick<OwnSchedule, 'times' | 'timeZone'> & Partial<OwnSchedule>,
  key: string,
): ScheduleDefinition {
  return {
    key,
    timing: parseTimes(times, timeZone),
    timeZone,
    jitterMs: 0,
    startingDeadlineMs: STARTING_DEADLINE_MS,
    since: createdAt === undefined ? undefined : Date.parse(createdAt),
    suspended: false,
    generation: 0,
  };
}

function busiestHour(occurrences: Occurrences, now: number): number {
  const times: number[] = [];
  for (let time = occurrences.next(now); time !== undefined && times.length < COUNTED_RUNS; )
    time = occurrences.next(times[times.push(time) - 1] ?? time);
  let [start, most] = [0, 1];
  times.forEach((time, index) => {
    while (time - (times[start] ?? time) >= HOUR_MS) start += 1;
    most = Math.max(most, index - start + 1);
  });
  return most;
}

function invalid(why: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', why);
}
