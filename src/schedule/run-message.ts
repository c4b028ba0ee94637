import type { OwnSchedule } from './agent-schedule.ts';

/** What the agent gets for the run that is due at this time. */
export interface RunMessage {
  readonly session: string;
  readonly text: string;
  /** The same for the same due time: a repeated run is the same message. */
  readonly key: string;
}

export interface RunTemplate {
  readonly message?: string | undefined;
  readonly session?: string | undefined;
  readonly timeZone?: string | undefined;
}

/** A schedule that an agent made; absent for that of its spec. */
export interface RunOwner {
  readonly id: string;
  readonly name: string;
}

export function runMessage(
  { message = '', session, timeZone = 'UTC' }: RunTemplate,
  due: number,
  owner?: RunOwner,
): RunMessage {
  const time = new Date(due).toISOString();
  const prefix = owner === undefined ? 'schedule' : `schedule-${owner.name}`;
  return {
    key: owner === undefined ? time : `${owner.id}/${time}`,
    session: session ?? `${prefix}-${time.slice(0, 19).replaceAll(/[-:]/g, '')}Z`,
    text: message.replaceAll('{{time}}', localTime(due, timeZone)),
  };
}

/** The message of a run of the schedule of a spec, or of one that the agent made. */
export function runOf(
  { spec, own }: { readonly spec: RunTemplate | undefined; readonly own: OwnSchedule | undefined },
  due: number,
): RunMessage & { readonly tainted?: boolean } {
  if (own === undefined) return runMessage(spec ?? {}, due);
  return { ...runMessage(own, due, own), ...(own.tainted === true ? { tainted: true } : {}) };
}

/** RFC 3339 in the time zone: `2026-03-03T09:00:00+01:00`. */
function localTime(time: number, timeZone: string): string {
  const date = new Date(time);
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    hourCycle: 'h23',
    dateStyle: 'short',
    timeStyle: 'medium',
  }).format(date);
  const zone =
    new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' }).format(date).split('GMT')[1] ?? '';
  return `${parts.replace(', ', 'T')}${zone === '' || zone === '+00:00' ? 'Z' : zone}`;
}
