import { Type, type Static } from 'typebox';
import { closed, count, Duration, Text } from '../common.ts';
import { Triggers } from './triggers.ts';

const TimeOfDay = (description: string) =>
  Type.String({
    'x-temper-form': 'a time of the day such as 22:00',
    pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
    maxLength: 5,
    description,
  });

const QuietHours = Type.Object(
  {
    from: TimeOfDay('The first minute, as `HH:MM` in the time zone.'),
    to: TimeOfDay('The first minute after it. On the next day when it is not after `from`.'),
  },
  { ...closed, description: 'A part of each day in which no run is due.' },
);

export const AgentSchedule = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum(['Reactive', 'Continuous', 'Periodic', 'Proactive'], {
        default: 'Reactive',
        description:
          'When the agent works: `Reactive` when it gets a message, `Continuous` also at an interval, `Periodic` also at the times of `cron`, `Proactive` also when an event matches one of its `triggers`.',
      }),
    ),
    interval: Type.Optional({
      ...Duration,
      default: '60s',
      description: 'With mode Continuous: the time between runs, from 60s to 24h.',
    }),
    persistent: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'With mode Continuous, in place of `interval`: the next run starts when the last one has ended. After a failed run it waits for one second, then two, and so on up to 30, and never stops.',
      }),
    ),
    cron: Type.Optional(
      Type.String({
        'x-temper-form': 'five cron fields such as "0 9 * * 1-5", six with the second first, or "every 5m"',
        pattern: '^(every [0-9]{1,5} ?[smhd]|[0-9A-Za-z*,/?#L-]+( [0-9A-Za-z*,/?#L-]+){4,5})$',
        maxLength: 128,
        description:
          'With mode Periodic: the times of the runs. Five cron fields, six with the second of the minute first, or `every 5m`.',
      }),
    ),
    timeZone: Type.Optional(
      Type.String({
        'x-temper-form': 'an IANA time zone such as Europe/Berlin',
        pattern: '^[A-Za-z0-9_+/-]+$',
        maxLength: 64,
        default: 'UTC',
        description: 'The time zone of `cron` and `quietHours`, by its IANA name.',
      }),
    ),
    message: Type.Optional(
      Text(4_096, 'What the agent gets as its message. `{{time}}` becomes the due time, as RFC 3339 in the time zone.'),
    ),
    session: Type.Optional(
      Type.String({
        'x-temper-form': 'a session name of letters, digits, ".", "_" and "-"',
        pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
        maxLength: 128,
        description: 'The session of all runs. Absent: each run has a session of its own.',
      }),
    ),
    triggers: Type.Optional(Triggers),
    startingDeadlineSeconds: Type.Optional(
      count(
        10,
        86_400,
        'How late a run may start. A due time that passed longer ago is missed, and of several only the last one runs.',
        3_600,
      ),
    ),
    jitter: Type.Optional({
      ...Duration,
      description:
        'With mode Periodic: moves the runs by a part of this duration, up to 1h, that is fixed for the agent and differs between agents.',
    }),
    quietHours: Type.Optional(QuietHours),
    maxActionsPerRun: Type.Optional(
      count(
        1,
        1_000,
        'Maximum number of tool calls of one run, or of the message of a trigger. Defaults to `limits.steps`.',
      ),
    ),
    suspend: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Starts no runs. Due times and events pass without being counted; messages arrive as before.',
      }),
    ),
  },
  {
    ...closed,
    description:
      'When the agent works without a message of a user; with temper run only with --serve. See docs/reference/schedules.md.',
  },
);
export type AgentSchedule = Static<typeof AgentSchedule>;
