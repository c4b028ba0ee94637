import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { AnyJson } from '../../tools/event-schema/parts.ts';
import { DeliveryToken, Timestamp } from '../schema-parts.ts';

export const ScheduleName = Type.String({
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  maxLength: 40,
  description: 'Name of a schedule that the agent made.',
});

export const CreateScheduleRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    input: Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'The arguments of `schedule_create`.' }),
  },
  { ...closed, description: 'Makes a schedule of the agent.' },
);
export type CreateScheduleRequest = Static<typeof CreateScheduleRequest>;

export const CreatedSchedule = Type.Object({ name: ScheduleName, nextRun: Timestamp }, closed);
export type CreatedSchedule = Static<typeof CreatedSchedule>;

export const DeleteScheduleRequest = Type.Object({ deliveryToken: DeliveryToken, name: ScheduleName }, closed);
export type DeleteScheduleRequest = Static<typeof DeleteScheduleRequest>;

export const ListSchedulesRequest = Type.Object({ deliveryToken: DeliveryToken }, closed);
export type ListSchedulesRequest = Static<typeof ListSchedulesRequest>;

const ListedSchedule = Type.Object(
  {
    name: Type.String(),
    times: Type.String({ description: 'Cron fields, `every 10m`, or one time.' }),
    timeZone: Type.String(),
    message: Type.String(),
    createdAt: Timestamp,
    nextRun: Type.Optional(Timestamp),
    lastRun: Type.Optional(Timestamp),
    failures: Type.Integer({ description: 'Runs that failed since the last completed one. After five no run starts.' }),
    stopped: Type.Optional(Type.String({ description: 'Why no run starts.' })),
  },
  closed,
);

export const OwnScheduleList = Type.Object(
  { schedules: Type.Array(ListedSchedule) },
  { ...closed, description: 'The schedules that the agent made, oldest first.' },
);
export type OwnScheduleList = Static<typeof OwnScheduleList>;
