import type { ListedSchedule, OwnScheduleList } from '../../gateway-api/schedules/schedule-schemas.ts';
import { TemperError } from '../../lib/errors.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import type { Decider } from '../../policy/types.ts';
import { isFailing, MAX_FAILURES, type ScheduleState } from '../../schedule/advance.ts';
import {
  type OwnSchedule,
  MAX_BYTES_PER_AGENT,
  MAX_BYTES_PER_NAMESPACE,
  MAX_SCHEDULES_PER_NAMESPACE,
} from '../../schedule/agent-schedule.ts';
import type { AgentSchedules, ScheduleOwner } from '../../schedule/agent-schedules.ts';
import { bytesOf, withoutSchedule } from '../../schedule/wanted-schedule.ts';
import type { GatewayDeps } from '../deps.ts';

type Deps = Pick<GatewayDeps, 'agentSchedules' | 'scheduleStates'>;

/** Throws TEMPER_QUOTA_EXCEEDED when the agents of the namespace have as many schedules as they may have together. */
export async function assertWithinNamespace(namespace: string, deps: Pick<Deps, 'agentSchedules'>): Promise<void> {
  const { schedules, bytes } = await sizeOf(namespace, deps);
  if (schedules >= MAX_SCHEDULES_PER_NAMESPACE || bytes >= MAX_BYTES_PER_NAMESPACE) throw beyondNamespace(namespace);
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
  const { schedules, bytes } = await sizeOf(owner.namespace, { agentSchedules });
  if (schedules <= MAX_SCHEDULES_PER_NAMESPACE && bytes <= MAX_BYTES_PER_NAMESPACE + MAX_BYTES_PER_AGENT) return;
  await agentSchedules.update(owner, (before) => withoutSchedule(before, id));
  throw beyondNamespace(owner.namespace);
}

async function sizeOf(namespace: string, { agentSchedules }: Pick<Deps, 'agentSchedules'>) {
  const all = await agentSchedules.ofNamespace(namespace);
  return {
    schedules: all.reduce((sum, { own }) => sum + own.length, 0),
    bytes: all.reduce((sum, each) => sum + bytesOf(each), 0),
  };
}

function beyondNamespace(namespace: string): TemperError {
  return new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `the agents of namespace ${namespace} may make ${MAX_SCHEDULES_PER_NAMESPACE} schedules with ${MAX_BYTES_PER_NAMESPACE / 1_024} KiB together; delete one first`,
  );
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
      return described(schedule, state, allowed.has(schedule.id));
    }),
  );
  return { schedules };
}

function described(schedule: OwnSchedule, state: ScheduleState | undefined, isAllowed: boolean): ListedSchedule {
  const { name, times, timeZone, message, createdAt } = schedule;
  const runs = runTimes(state);
  const stopped = stoppedBecause(schedule, runs.failures, isAllowed);
  return { name, times, timeZone, message, createdAt, ...runs, ...(stopped === undefined ? {} : { stopped }) };
}

/** What the operator stored about the runs of a schedule. */
export function runTimes(state: ScheduleState | undefined): Pick<ListedSchedule, 'failures' | 'nextRun' | 'lastRun'> {
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
