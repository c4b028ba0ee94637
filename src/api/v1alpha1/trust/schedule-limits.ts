import { Type } from 'typebox';
import { closed, count } from '../common.ts';

export const ScheduleLimits = Type.Object(
  {
    perAgent: Type.Optional(
      count(
        0,
        50,
        'Maximum number of schedules that one agent made itself. 0 permits none, and stops those that exist.',
        50,
      ),
    ),
    runsPerHour: Type.Optional(
      count(
        0,
        3_000,
        'Maximum number of runs in one hour of all schedules that one agent made itself. Those beyond it, the newest first, start no runs.',
        60,
      ),
    ),
  },
  { ...closed, description: 'The limits for agents that make schedules for themselves.' },
);
