import { Type, type Static } from 'typebox';
import { closed, count, Duration, Text } from '../common.ts';

/** Triggers of one agent. */
const MAX_TRIGGERS = 16;

const EventTrigger = Type.Object(
  {
    name: Type.String({
      'x-temper-form': 'a name of lower-case letters, digits and dashes',
      pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      maxLength: 40,
      description: 'The name of the trigger, unique in the list.',
    }),
    subject: Type.Optional(
      Text(
        128,
        'A pattern for the subjects of events, as for NATS: `*` stands for one token, a `>` at the end for the rest.',
      ),
    ),
    webhook: Type.Optional(
      Type.Object(
        {
          toleranceSeconds: Type.Optional(
            count(30, 3_600, 'How far the time of a signed request may be from the clock of the gateway.', 300),
          ),
        },
        {
          ...closed,
          description:
            'In place of `subject`: signed requests from outside. The keys are in the Secret `temper-webhooks`, under `AGENT.TRIGGER`.',
        },
      ),
    ),
    message: Text(
      4_096,
      'What the agent gets as its message. `{{event}}` becomes the data of the event, `{{event.MEMBER}}` one member of it; also `{{subject}}`, `{{source}}`, `{{agent}}`, `{{time}}` and `{{id}}`.',
    ),
    session: Type.Optional(
      Type.String({
        'x-temper-form': 'a session name of letters, digits, ".", "_" and "-"',
        pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
        maxLength: 128,
        description: 'The session of all messages. Absent: each message has a session of its own.',
      }),
    ),
    maxFires: Type.Optional(
      count(
        0,
        1_000_000_000,
        'How often the trigger fires in all. 0: no limit. A trigger with another name counts from 0.',
        0,
      ),
    ),
    maxFiresPerHour: Type.Optional(
      count(1, 3_600, 'How often the trigger fires in a clock hour (UTC). Further events pass.', 60),
    ),
    cooldown: Type.Optional({
      ...Duration,
      default: '0s',
      description: 'The time after a message in which further events pass, up to 24h.',
    }),
    enabled: Type.Optional(
      Type.Boolean({ default: true, description: 'Whether the trigger fires. Events pass while it is `false`.' }),
    ),
  },
  closed,
);
export type EventTrigger = Static<typeof EventTrigger>;

export const Triggers = Type.Array(EventTrigger, {
  maxItems: MAX_TRIGGERS,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  description: 'With mode Proactive: the events that give the agent a message. See docs/reference/events.md.',
});
