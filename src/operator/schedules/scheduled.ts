import { scheduleOf } from '../../api/schedule/definition.ts';
import type { ScheduleId } from '../../nats/schedules/schedule-states.ts';
import { type OwnSchedule, definitionOf } from '../../schedule/agent-schedule.ts';
import type { ScheduleDefinition } from '../../schedule/definition.ts';
import { type RunMessage, runOf as runOfSchedule } from '../../schedule/run-message.ts';
import { scheduleKey } from '../../schedule/wanted-schedule.ts';
import { parseKey } from '../kube/cache.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import type { ScheduleIndex } from './schedule-index.ts';

/** One schedule of one agent: that of its spec, or one that the agent made. */
export interface Scheduled {
  readonly agent: StoredAgent;
  readonly id: ScheduleId;
  readonly definition: ScheduleDefinition;
  readonly own: OwnSchedule | undefined;
}

/** The agent of a key of the work queue, and the id of a schedule that the agent made. */
export function parseScheduleKey(key: string): { namespace: string; name: string; id: string | undefined } {
  const { namespace, name: rest } = parseKey(key);
  const { namespace: name, name: id } = parseKey(rest);
  return name === '' ? { namespace, name: rest, id: undefined } : { namespace, name, id };
}

export function scheduleKeyOf({ metadata }: StoredAgent, id?: string): string {
  const key = `${metadata.namespace}/${metadata.name}`;
  return id === undefined ? key : `${key}/${id}`;
}

/** The schedule of the spec; undefined for an agent without one. The spec is valid. */
export function specSchedule(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  schedules: Pick<ScheduleIndex, 'of'>,
): Scheduled | undefined {
  const { uid, generation } = agent.metadata;
  const { pause, resumed = 0 } = schedules.of(uid)?.spec ?? {};
  const definition = scheduleOf({ key: uid, generation: generation + resumed, spec: agent.spec });
  if (definition === undefined) return undefined;
  const suspended = definition.suspended || pause !== undefined || isStopped(agent, policy);
  return { agent, id: { agentUid: uid }, definition: { ...definition, suspended }, own: undefined };
}

/** A schedule that the agent made; undefined when it was deleted. It starts no run that the policy and the grants do not allow any more. */
export function ownSchedule(
  agent: StoredAgent,
  policy: StoredPolicy | undefined,
  id: string,
  schedules: Pick<ScheduleIndex, 'of' | 'isAllowed'>,
): Scheduled | undefined {
  const { uid, generation } = agent.metadata;
  const own = schedules.of(uid)?.own.find((schedule) => schedule.id === id);
  if (own === undefined) return undefined;
  const isAllowed = policy !== undefined && schedules.isAllowed(agent, policy, id);
  const suspended = !isAllowed || own.pause !== undefined || agent.spec.suspend === true || isStopped(agent, policy);
  const definition = definitionOf(own, scheduleKey(uid, id));
  return {
    agent,
    id: { agentUid: uid, id },
    definition: { ...definition, suspended, generation: generation + (own.resumed ?? 0) },
    own,
  };
}

export function runOf({ agent, own }: Scheduled, due: number): RunMessage & { readonly tainted?: boolean } {
  return runOfSchedule({ spec: agent.spec.schedule, own }, due);
}

/** No run starts for an agent that gets no pod. */
function isStopped({ status }: StoredAgent, policy: StoredPolicy | undefined): boolean {
  const isStalled = status?.conditions?.some(({ type, status: value }) => type === 'Stalled' && value === 'True');
  return policy === undefined || policy.spec.suspend === true || isStalled === true;
}
