import { scheduleTimes } from '../../api/schedule/definition.ts';
import type { UserSchedule, UserScheduleList } from '../../gateway-api/schedules/user-schedule-schemas.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { isFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
import { runTimes } from '../../schedule/listed-schedule.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { listOwn } from './own-schedules.ts';

const MAX_SCHEDULES = 200;

type Deps = Pick<GatewayDeps, 'agentSchedules' | 'scheduleStates' | 'directory'>;

/** The schedules of these agents, of the spec first, with what the operator stored about their runs. */
export async function userSchedules(
  namespace: string,
  agents: readonly AgentState[],
  deps: Deps,
): Promise<UserScheduleList> {
  const stored = new Map((await deps.agentSchedules.ofNamespace(namespace)).map((each) => [each.agent.uid, each]));
  const schedules: UserSchedule[] = [];
  for (const state of agents) {
    if (schedules.length >= MAX_SCHEDULES) return { schedules, complete: false };
    schedules.push(...(await schedulesOf(state, stored.get(state.uid), deps)));
  }
  return { schedules: schedules.slice(0, MAX_SCHEDULES), complete: schedules.length <= MAX_SCHEDULES };
}

async function schedulesOf(state: AgentState, stored: AgentSchedules | undefined, deps: Deps): Promise<UserSchedule[]> {
  const { name: agent } = state.agent.metadata;
  const { schedule } = state.agent.spec;
  const times = scheduleTimes(schedule);
  const found: UserSchedule[] = [];
  if (schedule !== undefined && times !== undefined) {
    const { state: run } = await deps.scheduleStates.read({ agentUid: state.uid });
    const { message = '', timeZone = 'UTC', suspend = false } = schedule;
    found.push({ agent, times, timeZone, message, ...runTimes(run), ...decisions(stored?.spec?.pause, suspend, run) });
  }
  if (stored === undefined || stored.own.length === 0) return found;
  const own = await listOwn(stored, deps.directory.decider(state, false), deps);
  const pauses = new Map(stored.own.map(({ name, pause }) => [name, pause]));
  for (const { name, createdAt: _, ...rest } of own.schedules) {
    const pause = pauses.get(name);
    found.push({ agent, schedule: name, ...rest, ...(pause === undefined ? {} : { paused: { ...pause } }) });
  }
  return found;
}

function decisions(
  pause: UserSchedule['paused'],
  suspended: boolean,
  run: ScheduleState | undefined,
): Pick<UserSchedule, 'paused' | 'stopped'> {
  if (pause !== undefined) return { paused: { ...pause }, stopped: `a user paused it: ${pause.reason}` };
  if (suspended) return { stopped: 'spec.schedule.suspend is set' };
  return run !== undefined && isFailing(run) ? { stopped: `the last ${MAX_FAILURES} runs failed` } : {};
}
