import { isJsonObject, type Json } from '../../lib/json.ts';
import { ended, type ScheduledRunOutcome, type ScheduleState } from '../../schedule/advance.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import { parseOwnSchedules } from '../../schedule/agent-schedules.ts';
import { parseScheduleState } from '../../schedule/stored-state.ts';

/** The id of the schedule of a spec. */
export const SPEC_SCHEDULE = '';

/** What changes the schedules of an agent. */
export type ScheduleEntry =
  | { op: 'scheduled'; agent: string; schedule: string; state: ScheduleState }
  | { op: 'schedule-made'; agent: string; own: OwnSchedule }
  /** The schedule is gone, with its state. */
  | { op: 'unscheduled'; agent: string; schedule: string };

/** The schedules of one agent. */
export interface ScheduleRecords {
  /** By the id of the schedule. */
  readonly states: Map<string, ScheduleState>;
  /** Those that the agent made, by id, oldest first. */
  readonly own: Map<string, OwnSchedule>;
}

export function noScheduleRecords(): ScheduleRecords {
  return { states: new Map(), own: new Map() };
}

export function applyScheduleEntry({ states, own }: ScheduleRecords, entry: ScheduleEntry): void {
  if (entry.op === 'scheduled') states.set(entry.schedule, entry.state);
  else if (entry.op === 'schedule-made') own.set(entry.own.id, entry.own);
  else {
    states.delete(entry.schedule);
    own.delete(entry.schedule);
  }
}

/** The message ended; when it is that of a run, the run ended with it. */
export function endRun(
  { states }: ScheduleRecords,
  message: string,
  { outcome = 'excused', time }: { outcome?: ScheduledRunOutcome; time: number },
): void {
  for (const [id, state] of states) states.set(id, ended(state, message, outcome, time));
}

/** The stored form of a snapshot. */
export function storedScheduleRecords({ states, own }: ScheduleRecords): Json {
  return { states: [...states], own: [...own.values()] } as unknown as Json;
}

/** Reads a snapshot; what cannot be read is left out, as for a schedule that is new. */
export function parseScheduleRecords(value: Json | undefined): ScheduleRecords {
  const records = noScheduleRecords();
  if (!isJsonObject(value)) return records;
  for (const schedule of parseOwnSchedules(value['own'])) records.own.set(schedule.id, schedule);
  const { states } = value;
  for (const entry of Array.isArray(states) ? states : []) {
    const [id, stored] = Array.isArray(entry) ? entry : [];
    const state = parseScheduleState(stored);
    if (typeof id === 'string' && state !== undefined) records.states.set(id, state);
  }
  return records;
}
