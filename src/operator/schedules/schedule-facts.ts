import type { ScheduleStatus } from '../../api/v1alpha1/schedule/status.ts';
import { hasRuns } from '../../api/schedule/definition.ts';
import { isFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
import type { Pause } from '../../schedule/agent-schedule.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredAgent } from '../kube/types.ts';

export function hasSchedule({ spec }: StoredAgent): boolean {
  return spec.schedule !== undefined && hasRuns(spec.schedule);
}

export function scheduleStatus(state: ScheduleState, paused?: Pause): ScheduleStatus {
  const { last, lastSuccess, next, active, failures, missed, skipped } = state;
  return {
    ...(last === undefined ? {} : { lastScheduleTime: timestamp(last) }),
    ...(lastSuccess === undefined ? {} : { lastSuccessfulTime: timestamp(lastSuccess) }),
    ...(next === undefined ? {} : { nextScheduleTime: timestamp(next) }),
    active: active === undefined ? 0 : 1,
    failures,
    missed,
    skipped,
    ...(paused === undefined ? {} : { paused: { ...paused } }),
  };
}

/** Present only while the schedule starts no runs because the last ones failed. */
export function scheduleCondition(
  state: Pick<ScheduleState, 'failures'> | undefined,
): ConditionUpdate<'Scheduled'> | undefined {
  if (state === undefined || !isFailing(state)) return undefined;
  const message = `the last ${MAX_FAILURES} runs failed, so no further run starts; see kubectl temper deadletters, correct the cause, and use kubectl temper schedule resume`;
  return { type: 'Scheduled', status: 'False', reason: 'TooManyFailures', message };
}

/** RFC 3339 with whole seconds, the format of metav1.Time. */
export function timestamp(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
