import type { ScheduleStatus } from '../../api/v1alpha1/schedule/status.ts';
import { hasRuns } from '../../api/schedule/definition.ts';
import { isFailing, keepsFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
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

/** Present only while the last runs failed. A persistent schedule starts runs all the same. */
export function scheduleCondition(
  state: Pick<ScheduleState, 'failures' | 'persistent'> | undefined,
): ConditionUpdate<'Scheduled'> | undefined {
  if (state === undefined || !keepsFailing(state)) return undefined;
  if (!isFailing(state)) {
    const going = `at least the last ${MAX_FAILURES} runs failed; the next one starts 30 seconds after each; see kubectl temper deadletters`;
    return { type: 'Scheduled', status: 'True', reason: 'RunsFail', message: going };
  }
  const message = `the last ${MAX_FAILURES} runs failed, so no further run starts; see kubectl temper deadletters, correct the cause, and use kubectl temper schedule resume`;
  return { type: 'Scheduled', status: 'False', reason: 'TooManyFailures', message };
}

/** RFC 3339 with whole seconds, the format of metav1.Time. */
export function timestamp(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
