import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { OwnSchedule, Pause } from './agent-schedule.ts';

/** The agent whose schedules they are. */
export interface ScheduleOwner {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** What is stored about the schedules of an agent, besides their states. */
export interface AgentSchedules {
  readonly agent: ScheduleOwner;
  /** Those that the agent made, oldest first. */
  readonly own: readonly OwnSchedule[];
  /** What users decided about the schedule of the spec, which another source of truth owns. */
  readonly spec?: { readonly pause?: Pause; readonly resumed?: number };
}

export function noSchedules(agent: ScheduleOwner): AgentSchedules {
  return { agent, own: [] };
}

const TEXTS = ['id', 'name', 'times', 'timeZone', 'message', 'createdAt'] as const;

/** The document of a stored value; undefined when it is not valid. A schedule that cannot be read is left out. */
export function parseAgentSchedules(value: Json | undefined): AgentSchedules | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['agent']) || !Array.isArray(value['own'])) return undefined;
  const { uid, name, namespace } = value['agent'];
  if (typeof uid !== 'string' || typeof name !== 'string' || typeof namespace !== 'string') return undefined;
  const spec = isJsonObject(value['spec']) ? { spec: decisionsOf(value['spec']) } : {};
  return { agent: { uid, name, namespace }, own: parseOwnSchedules(value['own']), ...spec };
}

/** The schedules of a stored list; one that cannot be read is left out. */
export function parseOwnSchedules(value: Json | undefined): OwnSchedule[] {
  return Array.isArray(value) ? value.flatMap(parseSchedule) : [];
}

export function storedSchedules({ agent, own, spec }: AgentSchedules): JsonObject {
  return { agent, own, ...(spec === undefined ? {} : { spec }) } as unknown as JsonObject;
}

function parseSchedule(value: Json): OwnSchedule[] {
  if (!isJsonObject(value) || !TEXTS.every((name) => typeof value[name] === 'string')) return [];
  const { id, name, times, timeZone, message, createdAt, runsPerHour } = value as unknown as OwnSchedule;
  if (typeof runsPerHour !== 'number' || !(runsPerHour > 0)) return [];
  const session = typeof value['session'] === 'string' ? { session: value['session'] } : {};
  const tainted = value['tainted'] === true ? { tainted: true } : {};
  const known = { id, name, times, timeZone, message, createdAt, runsPerHour };
  return [{ ...known, ...session, ...tainted, ...decisionsOf(value) }];
}

function decisionsOf({ pause, resumed }: JsonObject): { pause?: Pause; resumed?: number } {
  return {
    ...(isPause(pause) ? { pause: { by: pause.by, reason: pause.reason, since: pause.since } } : {}),
    ...(typeof resumed === 'number' && resumed > 0 ? { resumed } : {}),
  };
}

function isPause(value: Json | undefined): value is Json & Pause {
  return isJsonObject(value) && ['by', 'reason', 'since'].every((name) => typeof value[name] === 'string');
}
