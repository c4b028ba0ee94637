import { isTemperError } from '../../lib/errors.ts';
import { advance, ended, type ScheduleState } from '../../schedule/advance.ts';
import { LocalInboxes, type LocalMessage } from '../messages/local-inbox.ts';
import { type Inboxes, inboxOf, type MessageEntry } from '../messages/message-entries.ts';
import type { LocalSchedule } from './member-schedules.ts';

/** As long as the message of a user may take on a cluster. */
const RUN_TIMEOUT_MS = 3_600_000;

/** The agent of the schedule. */
interface ScheduledAgent {
  readonly key: string;
  readonly name: string;
}

/** What to store about a schedule now. */
export interface PlannedScheduleRun {
  /** The state and the message of a run that starts are one change. */
  readonly entries: readonly MessageEntry[];
  /** Epoch milliseconds; undefined when it is never due again. */
  readonly next: number | undefined;
  readonly state: ScheduleState;
  /** A run was due, and the inbox was full. */
  readonly isFull: boolean;
}

type Storing = Pick<LocalInboxes, 'storing'>;

export interface DueSchedule {
  readonly all: Inboxes;
  readonly agent: ScheduledAgent;
  readonly schedule: LocalSchedule;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** What is due at `now`. The plan reads the stored state, so it is applied in the change in which it is made. */
export function plannedRun(inboxes: Storing, due: DueSchedule): PlannedScheduleRun {
  const { all, agent, schedule, now } = due;
  const { id, definition, isOwn } = schedule;
  const before = inboxOf(all, agent.key).schedules.states.get(id);
  const { state, run } = advance(definition, before, now, (time) => messageOf(due, time));
  const started = run === undefined ? { state, message: [], isFull: false } : startedRun(inboxes, due, state, run);
  const { state: after, message, isFull } = started;
  if (isOwn && after.next === undefined && after.active === undefined)
    return { entries: [{ op: 'unscheduled', agent: agent.key, schedule: id }], next: undefined, state: after, isFull };
  const changed: MessageEntry[] =
    after === before ? [] : [{ op: 'scheduled', agent: agent.key, schedule: id, state: after }];
  return { entries: [...changed, ...message], next: after.next, state: after, isFull };
}

function startedRun(
  inboxes: Storing,
  { all, agent, schedule, now }: DueSchedule,
  state: ScheduleState,
  due: number,
): { state: ScheduleState; message: readonly MessageEntry[]; isFull: boolean } {
  const run = schedule.runAt(due);
  const id = messageOf({ agent, schedule }, due);
  try {
    const message = inboxes.storing(all, agent.key, id, envelopeOf(agent, run, now));
    const isActive = message.length > 0 || inboxOf(all, agent.key).messages.has(id);
    // The clock went back: the run of this due time has ended already.
    return { state: isActive ? state : ended(state, id, 'excused', now), message, isFull: false };
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_BUS_FULL')) throw error;
    const { active: _, ...rest } = state;
    return { state: { ...rest, missed: rest.missed + 1 }, message: [], isFull: true };
  }
}

/** The same for the same due time, so that no due time has two messages. */
function messageOf({ agent, schedule }: Pick<DueSchedule, 'agent' | 'schedule'>, due: number): string {
  return LocalInboxes.idOf('schedule', agent.key, schedule.runAt(due).key);
}

function envelopeOf(
  { name }: ScheduledAgent,
  { session, text, tainted }: ReturnType<LocalSchedule['runAt']>,
  now: number,
): LocalMessage {
  return {
    to: name,
    from: 'schedule',
    source: 'Schedule',
    session,
    text,
    depth: 0,
    deadline: new Date(now + RUN_TIMEOUT_MS).toISOString(),
    time: new Date(now).toISOString(),
    ...(tainted === true ? { tainted } : {}),
  };
}
