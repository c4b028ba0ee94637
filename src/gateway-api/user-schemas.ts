import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import { StampedEvent } from '../tools/event-schema/agent-event.ts';
import { Code, SessionId, text } from '../tools/event-schema/parts.ts';
import { FinishReason } from './delivery-schemas.ts';
import { TEXT_CHARACTERS, Timestamp } from './schema-parts.ts';

export const UserMessageRequest = Type.Object(
  {
    text: text(TEXT_CHARACTERS, 'Text of the message.'),
    session: Type.Optional(SessionId),
  },
  { ...closed, description: 'Without `session` the gateway opens a new session.' },
);
export type UserMessageRequest = Static<typeof UserMessageRequest>;

export const UserMessageReceipt = Type.Object(
  {
    id: Type.String(),
    session: Type.String(),
    duplicate: Type.Boolean(),
    podBound: Type.Boolean({ description: 'The agent has a pod now. Otherwise the gateway wakes it up.' }),
    after: Type.Integer({
      description:
        "Sequence of the session's last line before this message; pass it as `after` to read from this message on.",
    }),
    traceId: Type.Optional(Type.String({ description: 'Trace id of the message in logs and traces.' })),
  },
  closed,
);
export type UserMessageReceipt = Static<typeof UserMessageReceipt>;

const Sequence = Type.Integer({ minimum: 0, description: 'Pass it as `after` to continue behind this line.' });

const Skip = Type.Optional(
  Type.Integer({
    minimum: 1,
    description: 'Pass it as `skip`, with `after`: the line is one of several stored at once.',
  }),
);

/** One JSON value per line of the events of a session; empty lines are keep-alive. */
export const SessionStreamLine = Type.Union(
  [
    Type.Object({ seq: Sequence, skip: Skip, kind: Type.Literal('event'), event: StampedEvent }, closed),
    Type.Object(
      {
        seq: Sequence,
        kind: Type.Literal('reply'),
        message: Type.String(),
        text: Type.String(),
        finishReason: FinishReason,
      },
      {
        ...closed,
        description:
          'The reply to a message, written by the gateway; the last line when the request names this message.',
      },
    ),
    Type.Object(
      { seq: Sequence, kind: Type.Literal('failed'), message: Type.String(), code: Code, text: Type.String() },
      closed,
    ),
  ],
  { $id: 'SessionStreamLine', description: 'A line of the events of a session.' },
);
export type SessionStreamLine = Static<typeof SessionStreamLine>;

export const SessionSummary = Type.Object(
  {
    session: Type.String(),
    openedAt: Timestamp,
    lastUsedAt: Timestamp,
    items: Type.Integer(),
    tainted: Type.Boolean({ description: 'Untrusted content has entered the session.' }),
  },
  closed,
);
export type SessionSummary = Static<typeof SessionSummary>;

export const UsageReport = Type.Object(
  {
    windows: Type.Array(
      Type.Object(
        {
          window: Type.Enum(['hour', 'day', 'month']),
          inputTokens: Type.Number(),
          outputTokens: Type.Number(),
          costMicros: Type.Number({ description: 'Millionths of a dollar.' }),
          inFlightTokens: Type.Number({ description: 'Reserved and not committed.' }),
        },
        closed,
      ),
    ),
    limits: Type.Record(Type.String(), Type.Number(), { description: 'Limits by quota field.' }),
  },
  closed,
);
export type UsageReport = Static<typeof UsageReport>;

export const DeadLetterSummary = Type.Object(
  {
    id: Type.String(),
    agent: Type.String(),
    session: Type.String(),
    time: Timestamp,
    deliveries: Type.Integer(),
    code: Type.String(),
    message: Type.String(),
    excerpt: Type.String({ description: 'The first 200 characters, printable.' }),
  },
  closed,
);
export type DeadLetterSummary = Static<typeof DeadLetterSummary>;

export const TopAgent = Type.Object(
  {
    agent: Type.String(),
    waiting: Type.Integer(),
    inFlight: Type.Integer(),
    deadLetters: Type.Integer(),
    tokensThisHour: Type.Number(),
    lastSeen: Type.Optional(
      Type.String({ description: 'RFC 3339, last use of a session; absent when the agent has no session.' }),
    ),
  },
  { ...closed, description: 'Live counters of one agent.' },
);
export type TopAgent = Static<typeof TopAgent>;

const SessionToolPromotion = Type.Object(
  {
    state: Type.Enum(['Candidate', 'Requested', 'Verifying', 'PanelReview', 'Promoted', 'Rejected']),
    since: Type.Optional(Timestamp),
    reason: Type.String({ description: 'Why the tool is in this state, and what is missing.' }),
    next: Type.String({ description: 'What happens next, or what a user can do.' }),
  },
  { ...closed, description: 'The promotion of the tool to tier Agent.' },
);
export type SessionToolPromotion = Static<typeof SessionToolPromotion>;

export const SessionToolSummary = Type.Object(
  {
    name: Type.String(),
    digest: Type.String(),
    session: Type.String(),
    uses: Type.Integer({ description: 'By this agent, in all its sessions, as its pod reported them.' }),
    acceptedAt: Timestamp,
    promotion: SessionToolPromotion,
  },
  { ...closed, description: 'A tool of a session; it is not a Kubernetes object.' },
);
export type SessionToolSummary = Static<typeof SessionToolSummary>;
