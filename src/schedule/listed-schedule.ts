import { isFailing, MAX_FAILURES, type ScheduleState } from './advance.ts';
import type { OwnSchedule } from './agent-schedule.ts';

/** When a schedule runs. Times as RFC 3339. */
export interface RunTimes {
  readonly failures: number;
  readonly nextRun?: string;
  readonly lastRun?: string;
}

/** A schedule that an agent made, as it lists it. */
export interface DescribedSchedule extends RunTimes {
  readonly name: string;
  readonly times: string;
  readonly timeZone: string;
  readonly message: string;
  readonly createdAt: string;
  /** Why no run starts. */
  readonly stopped?: string;
}

export function describedSchedule(
  schedule: OwnSchedule,
  state: ScheduleState | undefined,
  isAllowed: boolean,
): DescribedSchedule {
  const { name, times, timeZone, message, createdAt } = schedule;
  const runs = runTimes(state);
  const stopped = stoppedBecause(schedule, runs.failures, isAllowed);
  return { name, times, timeZone, message, createdAt, ...runs, ...(stopped === undefined ? {} : { stopped }) };
}

export function runTimes(state: ScheduleState | undefined): RunTimes {
  const { next, last, failures = 0 } = state ?? {};
  return {
    failures,
    ...(next === undefined ? {} : { nextRun: new Date(next).toISOString() }),
    ...(last === undefined ? {} : { lastRun: new Date(last).toISOString() }),
  };
}

function stoppedBecause({ pause }: OwnSchedule, failures: number, isAllowed: boolean): string | undefined {
  if (pause !== undefined) return `a user paused it: ${pause.reason}`;
  if (!isAllowed) return 'the policy or the grants allow fewer schedules or runs';
  return isFailing({ failures }) ? `the last ${MAX_FAILURES} runs failed` : undefined;
}
