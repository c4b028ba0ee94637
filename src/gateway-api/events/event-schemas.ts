import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { AnyJson } from '../../tools/event-schema/parts.ts';
import { AgentName, DeliveryToken } from '../schema-parts.ts';

const SubjectText = (description: string) => Type.String({ minLength: 1, maxLength: 128, description });
const Seconds = (maximum: number, description: string) => Type.Integer({ minimum: 1, maximum, description });

/** The arguments of `event_publish`. */
const EventDraft = Type.Object(
  {
    subject: SubjectText('Subject of the event.'),
    data: Type.Optional(Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'At most 8 KiB as JSON.' })),
    to: Type.Optional(AgentName),
    ttlSeconds: Type.Optional(Seconds(3_600, 'After it no message of the event is delivered.')),
  },
  closed,
);

export const PublishEventRequest = Type.Object(
  { deliveryToken: DeliveryToken, event: EventDraft },
  { ...closed, description: 'Publishes an event in the namespace of the agent.' },
);
export type PublishEventRequest = Static<typeof PublishEventRequest>;

export const EventReceipt = Type.Object(
  {
    id: Type.String({ description: 'Id of the event.' }),
    messages: Type.Integer({ description: 'Messages that the event caused.' }),
    refused: Type.Integer({ description: 'Triggers and subscriptions that matched, and gave no message.' }),
  },
  { ...closed, description: 'The event was accepted.' },
);
export type EventReceipt = Static<typeof EventReceipt>;

/** The arguments of `event_subscribe`. */
const SubscriptionDraft = Type.Object(
  {
    subject: SubjectText('Pattern for the subjects of events.'),
    message: Type.Optional(Type.String({ minLength: 1, maxLength: 2_048, description: 'Template of the messages.' })),
    maxFires: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'After so many events the subscription is silent.' }),
    ),
    ttlSeconds: Type.Optional(Seconds(2_592_000, 'How long the subscription exists; a day when absent.')),
  },
  closed,
);

export const SubscribeRequest = Type.Object(
  { deliveryToken: DeliveryToken, subscription: SubscriptionDraft },
  { ...closed, description: 'The session gets a message for each matching event.' },
);
export type SubscribeRequest = Static<typeof SubscribeRequest>;

export const SubscriptionReceipt = Type.Object(
  {
    id: Type.String({ description: 'Id of the subscription.' }),
    expiresAt: Type.String({ description: 'RFC 3339.' }),
  },
  { ...closed, description: 'The subscription of the session.' },
);
export type SubscriptionReceipt = Static<typeof SubscriptionReceipt>;

export const UnsubscribeRequest = Type.Object(
  { deliveryToken: DeliveryToken, id: Type.String({ pattern: '^[0-9]{1,2}-[0-9a-f]{12}$' }) },
  { ...closed, description: 'Ends a subscription of the agent.' },
);
export type UnsubscribeRequest = Static<typeof UnsubscribeRequest>;

export const UnsubscribeReceipt = Type.Object({ ended: Type.Boolean() }, { ...closed, description: 'Idempotent.' });
export type UnsubscribeReceipt = Static<typeof UnsubscribeReceipt>;

export const ListSubscriptionsRequest = Type.Object({ deliveryToken: DeliveryToken }, closed);
export type ListSubscriptionsRequest = Static<typeof ListSubscriptionsRequest>;

export const SubscriptionList = Type.Object(
  {
    subscriptions: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          subject: Type.String(),
          session: Type.String(),
          expiresAt: Type.String({ description: 'RFC 3339.' }),
          fires: Type.Integer({ description: 'Messages so far.' }),
        },
        closed,
      ),
    ),
  },
  { ...closed, description: 'The subscriptions of the agent.' },
);
export type SubscriptionList = Static<typeof SubscriptionList>;

export const EventSummary = Type.Object(
  {
    id: Type.String(),
    subject: Type.String(),
    source: Type.Enum(['Agent', 'Platform', 'Webhook']),
    agent: Type.String({ description: 'Who published it, whom it is about, or whose webhook got it.' }),
    time: Type.String({ description: 'RFC 3339.' }),
    tainted: Type.Boolean({ description: 'It came from outside, or from a session with untrusted content.' }),
    messages: Type.Integer({ description: 'Messages that it caused.' }),
    refused: Type.Integer({ description: 'Triggers and subscriptions that matched, and gave no message.' }),
    excerpt: Type.String({ description: 'The beginning of the data, as JSON.' }),
  },
  { ...closed, description: 'An event of the history.' },
);
export type EventSummary = Static<typeof EventSummary>;
