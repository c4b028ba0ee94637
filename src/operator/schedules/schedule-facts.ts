import type { ScheduleStatus } from '../../api/v1alpha1/schedule/status.ts';
import { hasRuns, scheduleOf } from '../../api/schedule/definition.ts';
import { isFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
import type { ScheduleDefinition } from '../../schedule/definition.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';

/** The schedule of the agent; undefined for an agent without one. The spec is valid. No run starts for an agent that gets no pod. */
export function definitionOf(agent: StoredAgent, policy: StoredPolicy | undefined): ScheduleDefinition | undefined {
  const { uid, generation } = agent.metadata;
  const definition = scheduleOf({ key: uid, generation, spec: agent.spec });
  if (definition === undefined) return undefined;
  const isStalled = agent.status?.conditions?.some(({ type, status }) => type === 'Stalled' && status === 'True');
  const isStopped = policy === undefined || policy.spec.suspend === true || isStalled === true;
  return isStopped ? { ...definition, suspended: true } : definition;
}

export function hasSchedule({ spec }: StoredAgent): boolean {
  return spec.schedule !== undefined && hasRuns(spec.schedule);
}

export function scheduleStatus(state: ScheduleState): ScheduleStatus {
  const { last, lastSuccess, next, active, failures, missed, skipped } = state;
  return {
    ...(last === undefined ? {} : { lastScheduleTime: timestamp(last) }),
    ...(lastSuccess === undefined ? {} : { lastSuccessfulTime: timestamp(lastSuccess) }),
    ...(next === undefined ? {} : { nextScheduleTime: timestamp(next) }),
    active: active === undefined ? 0 : 1,
    failures,
    missed,
    skipped,
  };
}

/** Present only while the schedule starts no runs because the last ones failed. */
export function scheduleCondition(
  state: Pick<ScheduleState, 'failures'> | undefined,
): ConditionUpdate<'Scheduled'> | undefined {
  if (state === undefined || !isFailing(state)) return undefined;
  const message = `the last ${MAX_FAILURES} runs failed, so no further run starts; see kubectl temper deadletters, correct the cause and change the Agent`;
  return { type: 'Scheduled', status: 'False', reason: 'TooManyFailures', message };
}

/** RFC 3339 with whole seconds, the format of metav1.Time. */
function timestamp(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}
