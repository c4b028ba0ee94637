import { parseTiming, type ScheduleDefinition } from '../../schedule/definition.ts';
import { parseDuration } from '../quantities.ts';
import type { AgentSchedule } from '../v1alpha1/schedule/spec.ts';

/** The agent whose schedule it is. */
interface ScheduledAgent {
  /** The same for as long as the agent exists. */
  readonly key: string;
  readonly generation: number;
  readonly spec: { readonly schedule?: AgentSchedule | undefined; readonly suspend?: boolean | undefined };
}

const DEFAULT_INTERVAL = '60s';
const DEFAULT_STARTING_DEADLINE_SECONDS = 3_600;

/** Is a run due at times? The other modes work on messages, of users or of triggers. */
export function hasRuns({ mode }: Pick<AgentSchedule, 'mode'>): boolean {
  return mode === 'Continuous' || mode === 'Periodic';
}

/** Undefined for an agent that works on messages only. Throws TEMPER_MANIFEST_INVALID for a spec that the rules of the kind refuse. */
export function scheduleOf({ key, generation, spec }: ScheduledAgent): ScheduleDefinition | undefined {
  const { schedule } = spec;
  if (schedule === undefined || !hasRuns(schedule)) return undefined;
  const { timeZone = 'UTC', quietHours } = schedule;
  return {
    key,
    generation,
    timeZone,
    timing: timingOf(schedule, timeZone),
    jitterMs: schedule.jitter === undefined ? 0 : parseDuration(schedule.jitter),
    startingDeadlineMs: (schedule.startingDeadlineSeconds ?? DEFAULT_STARTING_DEADLINE_SECONDS) * 1_000,
    suspended: schedule.suspend === true || spec.suspend === true,
    ...(quietHours === undefined ? {} : { quietHours }),
  };
}

/** The times of the schedule of a spec, as users write them; undefined for an agent that works on messages only. */
export function scheduleTimes(schedule: AgentSchedule | undefined): string | undefined {
  if (schedule === undefined || !hasRuns(schedule)) return undefined;
  if (schedule.persistent === true) return 'persistent';
  return schedule.mode === 'Periodic' ? (schedule.cron ?? '') : `every ${schedule.interval ?? DEFAULT_INTERVAL}`;
}

function timingOf(
  { mode, interval, persistent, cron = '' }: AgentSchedule,
  timeZone: string,
): ScheduleDefinition['timing'] {
  if (mode === 'Periodic') return parseTiming(cron, timeZone);
  if (persistent === true) return { kind: 'Persistent' };
  return { kind: 'Interval', every: parseDuration(interval ?? DEFAULT_INTERVAL) };
}
