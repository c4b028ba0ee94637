import type { OwnScheduleList } from '../../gateway-api/schedules/schedule-schemas.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import type { Decider } from '../../policy/types.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import { describedSchedule } from '../../schedule/listed-schedule.ts';
import { assertNamespaceLimits, withoutSchedule } from '../../schedule/wanted-schedule.ts';
import type { GatewayDeps } from '../deps.ts';

type Deps = Pick<GatewayDeps, 'agentSchedules' | 'scheduleStates'>;

/** Throws TEMPER_QUOTA_EXCEEDED when the agents of the namespace have as many schedules as they may have together. */
export async function assertWithinNamespace(
  namespace: string,
  { agentSchedules }: Pick<Deps, 'agentSchedules'>,
): Promise<void> {
  assertNamespaceLimits(namespace, await agentSchedules.ofNamespace(namespace));
}

/**
 * Takes a schedule back when the namespace has too many with it: another gateway stored one between the count and the write. At the limit
 * none of several schedules of one moment may remain. Throws TEMPER_QUOTA_EXCEEDED.
 */
export async function keepWithinNamespace(
  owner: ScheduleOwner,
  id: string,
  { agentSchedules }: Pick<Deps, 'agentSchedules'>,
): Promise<void> {
  const all = await agentSchedules.ofNamespace(owner.namespace);
  try {
    assertNamespaceLimits(owner.namespace, all, { isStored: true });
  } catch (error) {
    await agentSchedules.update(owner, (before) => withoutSchedule(before, id));
    throw error;
  }
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
