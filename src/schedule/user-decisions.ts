import type { OwnSchedule, Pause } from './agent-schedule.ts';
import type { AgentSchedules } from './agent-schedules.ts';
import { requireSchedule } from './wanted-schedule.ts';

/** The name of a schedule that the agent made; absent for that of its spec. */
type ScheduleName = string | undefined;

/** No run starts until a user resumes the schedule. Throws TEMPER_NOT_FOUND. */
export function paused(schedules: AgentSchedules, name: ScheduleName, pause: Pause): AgentSchedules {
  return decided(schedules, name, (before) => ({ ...before, pause }));
}

/** Also ends the failures that stopped the schedule. Throws TEMPER_NOT_FOUND. */
export function resumed(schedules: AgentSchedules, name: ScheduleName): AgentSchedules {
  return decided(schedules, name, (before) => {
    const { pause: _pause, ...rest } = before;
    return { ...rest, resumed: (rest.resumed ?? 0) + 1 };
  });
}

type Decisions = Pick<OwnSchedule, 'pause' | 'resumed'>;

function decided(
  schedules: AgentSchedules,
  name: ScheduleName,
  change: <T extends Decisions>(before: T) => Omit<T, 'pause'> & Decisions,
): AgentSchedules {
  if (name === undefined) return { ...schedules, spec: change(schedules.spec ?? {}) };
  const { id } = requireSchedule(schedules, name);
  const own = schedules.own.map((schedule) => (schedule.id === id ? change(schedule) : schedule));
  return { ...schedules, own };
}
