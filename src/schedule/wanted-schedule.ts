import { sha256 } from '../lib/canonical.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import {
  type OwnSchedule,
  MAX_BYTES_PER_AGENT,
  MAX_BYTES_PER_NAMESPACE,
  MAX_MESSAGE_CHARACTERS,
  MAX_SCHEDULES_PER_AGENT,
  MAX_SCHEDULES_PER_NAMESPACE,
  plannedRuns,
} from './agent-schedule.ts';
import { type AgentSchedules, storedSchedules } from './agent-schedules.ts';

/** The call that makes a schedule. */
interface ScheduleCall {
  readonly id: string;
  readonly agentUid: string;
  readonly session: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;
const MAX_TIMES = 128;

/** Reads the arguments of `schedule_create`, which a model wrote. Throws TEMPER_TOOL_INPUT_INVALID with the field and the rule. */
export function wantedSchedule(
  input: Json,
  { id, agentUid, session, now }: ScheduleCall,
): { schedule: OwnSchedule; nextRun: string } {
  if (!isJsonObject(input)) throw invalid('the arguments are not an object');
  const { name, times, timeZone = 'UTC', message, continueSession = false } = input;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid('name has to consist of lower-case letters, digits and dashes, at most 40');
  }
  if (typeof message !== 'string' || message === '' || message.length > MAX_MESSAGE_CHARACTERS) {
    throw invalid(`message has to be a text of at most ${MAX_MESSAGE_CHARACTERS} characters`);
  }
  if (typeof times !== 'string' || times.length > MAX_TIMES || typeof timeZone !== 'string') {
    throw invalid('times has to be cron fields, "every 10m" or one time, and timeZone an IANA name');
  }
  const planned = planOf({ times: times.trim(), timeZone }, scheduleKey(agentUid, id), now);
  const schedule = {
    id,
    name,
    times: times.trim(),
    timeZone,
    message: message.toWellFormed(),
    runsPerHour: planned.runsPerHour,
    createdAt: new Date(now).toISOString(),
    ...(continueSession === true ? { session } : {}),
  };
  return { schedule, nextRun: new Date(planned.first).toISOString() };
}

/** Identifies the schedule, for as long as it exists. */
export function scheduleKey(agentUid: string, id: string): string {
  return `${agentUid}/${id}`;
}

/** With one more schedule. Throws TEMPER_TOOL_INPUT_INVALID for a name that is taken, TEMPER_QUOTA_EXCEEDED beyond the limits of an agent. */
export function withSchedule(schedules: AgentSchedules, added: OwnSchedule): AgentSchedules {
  const { own } = schedules;
  if (own.some(({ name }) => name === added.name)) {
    throw invalid(`you have a schedule "${added.name}" already; delete it first, or choose another name`);
  }
  if (own.length >= MAX_SCHEDULES_PER_AGENT) {
    throw full(`an agent may have ${MAX_SCHEDULES_PER_AGENT} schedules; delete one first`);
  }
  const changed = { ...schedules, own: [...own, added] };
  if (bytesOf(changed) <= MAX_BYTES_PER_AGENT) return changed;
  throw full(`the schedules of an agent may have ${MAX_BYTES_PER_AGENT / 1_024} KiB together; delete one first`);
}

/** Throws TEMPER_QUOTA_EXCEEDED when the agents of a namespace may not have one more schedule; with `isStored`, when they have one too many. */
export function assertNamespaceLimits(
  namespace: string,
  all: readonly AgentSchedules[],
  { isStored = false }: { isStored?: boolean } = {},
): void {
  const schedules = all.reduce((sum, { own }) => sum + own.length, 0);
  const bytes = all.reduce((sum, each) => sum + bytesOf(each), 0);
  const [one, size] = isStored ? [0, -MAX_BYTES_PER_AGENT] : [1, 1];
  if (schedules + one <= MAX_SCHEDULES_PER_NAMESPACE && bytes + size <= MAX_BYTES_PER_NAMESPACE) return;
  throw full(
    `the agents of namespace ${namespace} may make ${MAX_SCHEDULES_PER_NAMESPACE} schedules with ${MAX_BYTES_PER_NAMESPACE / 1_024} KiB together; delete one first`,
  );
}

/** The id of a schedule, derived from the call that makes it. */
export function scheduleIdOf(key: string): string {
  return `own-${sha256(key).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

/** Without the schedule of this id; the same object when there is none. */
export function withoutSchedule(schedules: AgentSchedules, id: string): AgentSchedules {
  const own = schedules.own.filter((schedule) => schedule.id !== id);
  return own.length === schedules.own.length ? schedules : { ...schedules, own };
}

/** Throws TEMPER_NOT_FOUND. */
export function requireSchedule({ own }: AgentSchedules, name: string): OwnSchedule {
  const found = own.find((schedule) => schedule.name === name);
  if (found !== undefined) return found;
  const names = own.map((schedule) => schedule.name).join(', ');
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `the agent made no schedule "${printable(name, 40)}"; ${names === '' ? 'it made none' : `it made: ${names}`}`,
  );
}

export function bytesOf(schedules: AgentSchedules): number {
  return Buffer.byteLength(JSON.stringify(storedSchedules(schedules)));
}

function planOf(times: Pick<OwnSchedule, 'times' | 'timeZone'>, key: string, now: number) {
  try {
    return plannedRuns(times, key, now);
  } catch (error) {
    if (isTemperError(error)) throw invalid(`times: ${messageOf(error, 300)}`);
    throw error;
  }
}

function invalid(why: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', `the schedule cannot be made: ${why}`);
}

function full(why: string): TemperError {
  return new TemperError('TEMPER_QUOTA_EXCEEDED', why);
}
