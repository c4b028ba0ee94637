import type { OwnScheduleList } from '../../gateway-api/schedules/schedule-schemas.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import type { Decider } from '../../policy/types.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { describedSchedule } from '../../schedule/listed-schedule.ts';
import { assertNamespaceLimits } from '../../schedule/wanted-schedule.ts';
import type { GatewayDeps } from '../deps.ts';

type Deps = Pick<GatewayDeps, 'agentSchedules' | 'scheduleStates'>;

/** Throws TEMPER_QUOTA_EXCEEDED when the agents of the namespace have as many schedules as they may have together. */
export async function assertWithinNamespace(namespace: string, { agentSchedules }: Deps): Promise<void> {
  assertNamespaceLimits(namespace, await agentSchedules.ofNamespace(namespace));
}

/** The schedules that the agent made, with what the operator stored about their runs. */
export async function listOwn(
  { agent, own }: AgentSchedules,
  decider: Pick<Decider, 'decide'>,
  { scheduleStates }: Deps,
): Promise<OwnScheduleList> {
  const allowed = allowedSchedules(decider, own);
  const schedules = await Promise.all(
    own.map(async (schedule) => {
      const { state } = await scheduleStates.read({ agentUid: agent.uid, id: schedule.id });
      return describedSchedule(schedule, state, allowed.has(schedule.id));
    }),
  );
  return { schedules };
}
