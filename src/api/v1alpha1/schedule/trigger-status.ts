import { Type, type Static } from 'typebox';
import { closed, count, Text } from '../common.ts';

const Time = (description: string) => Type.String({ format: 'date-time', maxLength: 32, description });

const TriggerStatus = Type.Object(
  {
    name: Text(40, 'The name of the trigger.'),
    fires: count(0, 1e12, 'Events that gave the agent a message.'),
    lastFireTime: Type.Optional(Time('When the last one did.')),
    refused: count(
      0,
      1e12,
      'Matching events that gave no message, about: gateways may count one twice, or leave it out.',
    ),
    lastRefusal: Type.Optional(
      Type.Object(
        {
          reason: Text(64, 'Why: MaxFires, Cooldown, HourlyLimit, Suspended, Denied, SessionClosed, Full or TooLarge.'),
          time: Time('When.'),
        },
        { ...closed, description: 'The last one that gave no message.' },
      ),
    ),
  },
  closed,
);
export type TriggerStatus = Static<typeof TriggerStatus>;

export const TriggerStatuses = Type.Array(TriggerStatus, {
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  description: 'What the triggers of the agent did. Absent until an event matches one. Updated every few minutes.',
});
