import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { AgentName, Timestamp } from '../schema-parts.ts';
import { ScheduleName } from './schedule-schemas.ts';

const By = Type.String({ minLength: 1, maxLength: 256, description: 'The user, as the client states it.' });
const Reason = Type.String({ minLength: 1, maxLength: 1_024 });
const Target = Type.Optional(ScheduleName);

export const UserSchedule = Type.Object(
  {
    agent: AgentName,
    schedule: Type.Optional(ScheduleName),
    times: Type.String({ description: 'Cron fields, `every 10m`, or one time.' }),
    timeZone: Type.String(),
    message: Type.String(),
    nextRun: Type.Optional(Timestamp),
    lastRun: Type.Optional(Timestamp),
    failures: Type.Integer(),
    paused: Type.Optional(Type.Object({ by: Type.String(), reason: Type.String(), since: Timestamp }, closed)),
    stopped: Type.Optional(Type.String({ description: 'Why no run starts.' })),
  },
  { ...closed, description: 'One schedule. Without `schedule` it is that of the spec.' },
);
export type UserSchedule = Static<typeof UserSchedule>;

export const UserScheduleList = Type.Object(
  {
    schedules: Type.Array(UserSchedule),
    complete: Type.Boolean({ description: 'False when there are more schedules than the list has.' }),
  },
  closed,
);
export type UserScheduleList = Static<typeof UserScheduleList>;

export const PauseScheduleRequest = Type.Object(
  { schedule: Target, by: By, reason: Reason },
  { ...closed, description: 'Stops a schedule until a user resumes it. Without `schedule` that of the spec.' },
);
export type PauseScheduleRequest = Static<typeof PauseScheduleRequest>;

export const ResumeScheduleRequest = Type.Object(
  { schedule: Target, by: By },
  { ...closed, description: 'Ends a pause, and failures that stopped the schedule.' },
);
export type ResumeScheduleRequest = Static<typeof ResumeScheduleRequest>;

export const TriggerScheduleRequest = Type.Object(
  { schedule: Target, by: By },
  { ...closed, description: 'Sends the message of a run now, beside the runs of the schedule.' },
);
export type TriggerScheduleRequest = Static<typeof TriggerScheduleRequest>;

export const TriggeredRun = Type.Object(
  { id: Type.String({ description: 'Id of the message.' }), session: Type.String(), duplicate: Type.Boolean() },
  closed,
);
export type TriggeredRun = Static<typeof TriggeredRun>;
