import { Type, type Static } from 'typebox';
import { closed, count, Text } from '../common.ts';

const Time = (description: string) => Type.String({ format: 'date-time', maxLength: 32, description });

export const ScheduleStatus = Type.Object(
  {
    lastScheduleTime: Type.Optional(Time('Due time of the last run that started.')),
    lastSuccessfulTime: Type.Optional(Time('End of the last run that the agent completed.')),
    nextScheduleTime: Type.Optional(Time('Due time of the next run. Absent when no run is due any more.')),
    active: count(0, 1, 'Runs that have not ended.'),
    failures: count(
      0,
      1_000_000,
      'Runs that failed since the last completed one. After five the schedule is suspended.',
    ),
    missed: count(0, 1e12, 'Due times that passed without a run because the operator or NATS was unavailable.'),
    paused: Type.Optional(
      Type.Object(
        {
          by: Text(256, 'Who paused it, as the command states it.'),
          reason: Text(1024, 'The reason that was given.'),
          since: Time('Since when.'),
        },
        {
          ...closed,
          description: 'A user paused the schedule with `kubectl temper schedule pause`. Absent otherwise.',
        },
      ),
    ),
    skipped: count(0, 1e12, 'Due times that passed without a run because the previous run had not ended.'),
  },
  {
    ...closed,
    description: 'The runs of the schedule. Absent without a schedule. Updated every few minutes.',
  },
);
export type ScheduleStatus = Static<typeof ScheduleStatus>;
