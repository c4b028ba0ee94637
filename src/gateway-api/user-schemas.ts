import { type Static, Type } from 'typebox';
import { TOOL_CATEGORIES } from '../api/v1alpha1/actions.ts';
import { closed } from '../api/v1alpha1/common.ts';
import { USAGE_GROUPS } from '../ledger/usage/usage-groups.ts';
import type { TrustExplanation } from '../policy/trust/explain.ts';
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
    waitsFor: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'ApprovalRequests that an earlier message of the session waits for. This message is delivered after that one.',
      }),
    ),
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
        format: Type.Optional(
          Type.Literal('json', {
            description: 'The gateway has checked that the text is JSON that matches `spec.returns` of the agent.',
          }),
        ),
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

export const SessionCloseReceipt = Type.Object(
  {
    session: Type.String(),
    closedBefore: Type.Boolean({ description: 'The session was closed already.' }),
    tools: Type.Integer({ description: 'Session tools that were removed.' }),
    endedMessages: Type.Array(Type.String(), { description: 'Messages that were ended without an answer.' }),
  },
  closed,
);
export type SessionCloseReceipt = Static<typeof SessionCloseReceipt>;

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
          networkBytes: Type.Number({ description: 'Bytes through the egress proxy, in both directions.' }),
        },
        closed,
      ),
    ),
    limits: Type.Record(Type.String(), Type.Number(), { description: 'Limits by quota field.' }),
  },
  closed,
);
export type UsageReport = Static<typeof UsageReport>;

export const UsageBreakdown = Type.Object(
  {
    by: Type.Enum([...USAGE_GROUPS]),
    since: Type.String({ description: 'The first day, in UTC.' }),
    rows: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'The agent, team, root message, model or day.' }),
          calls: Type.Number(),
          inputTokens: Type.Number(),
          outputTokens: Type.Number(),
          costMicros: Type.Number({ description: 'Millionths of a dollar.' }),
          unpriced: Type.Array(Type.String(), {
            description: 'Models without a configured price, whose calls count at the default price.',
          }),
        },
        closed,
      ),
    ),
    complete: Type.Boolean({ description: 'False when there are more rows.' }),
  },
  closed,
);
export type UsageBreakdown = Static<typeof UsageBreakdown>;

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

export const TaskRatingRequest = Type.Object(
  {
    message: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'The message to rate.' })),
    session: Type.Optional(SessionId),
    rating: Type.Integer({ minimum: 0, maximum: 10, description: 'From 0, useless, to 10, perfect.' }),
    category: Type.Optional(
      Type.Enum([...TOOL_CATEGORIES], { description: 'The tool category that the task was about.' }),
    ),
  },
  { ...closed, description: 'Names the message, or the session whose latest task is rated.' },
);
export type TaskRatingRequest = Static<typeof TaskRatingRequest>;

export const TaskRatingReceipt = Type.Object(
  {
    message: Type.String(),
    session: Type.String(),
    outcome: Type.Enum(['completed', 'failed', 'excused']),
    rating: Type.Integer(),
  },
  closed,
);
export type TaskRatingReceipt = Static<typeof TaskRatingReceipt>;

export const ReactivationRequest = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 80, description: 'The name that models use, or the digest.' }),
    reason: text(1_000, 'Why the tool should be verified again.'),
  },
  closed,
);
export type ReactivationRequest = Static<typeof ReactivationRequest>;

export const ReactivationReceipt = Type.Object(
  { agent: Type.String(), tool: Type.String(), digest: Type.String() },
  { ...closed, description: 'The tool whose tests run again. The status of the agent has the result.' },
);
export type ReactivationReceipt = Static<typeof ReactivationReceipt>;

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
    state: Type.Enum([
      'Candidate',
      'Requested',
      'Verifying',
      'Examining',
      'PanelReview',
      'AwaitingApproval',
      'Promoted',
      'Rejected',
    ]),
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
    outOfService: Type.Optional(
      Type.String({ description: 'Why agents cannot call it any more, such as a revocation; absent while they can.' }),
    ),
  },
  { ...closed, description: 'A tool of a session; it is not a Kubernetes object.' },
);
export type SessionToolSummary = Static<typeof SessionToolSummary>;

const Requirement = Type.Object(
  {
    rule: Type.Enum(['minTasks', 'minRatings', 'minQuality', 'score', 'activeFor', 'cleanFor', 'coolDown']),
    met: Type.Boolean(),
    required: Type.String(),
    actual: Type.String(),
    dueAt: Type.Optional(Type.Number({ description: 'When time alone meets it, in epoch milliseconds.' })),
  },
  closed,
);

const Term = Type.Object(
  {
    name: Type.Enum(['quality', 'completion', 'reliability', 'experience']),
    value: Type.Number({ description: '0 to 1; 0 without data.' }),
    weight: Type.Number({ description: 'Percent.' }),
    source: Type.String(),
  },
  closed,
);

const Track = Type.Object(
  {
    category: Type.Optional(Type.String({ description: 'Absent: all requests without a category of their own.' })),
    level: Type.String(),
    score: Type.Optional(Type.Number({ description: '0 to 1, with strategy type Weighted.' })),
    terms: Type.Optional(Type.Array(Term)),
    next: Type.Optional(
      Type.Object(
        { level: Type.String(), needsApproval: Type.Boolean(), requirements: Type.Array(Requirement) },
        { ...closed, description: 'Absent at the top, and with strategy Disabled.' },
      ),
    ),
  },
  closed,
);

const Explanation = Type.Object(
  {
    strategy: Type.String(),
    level: Type.String(),
    initial: Type.String(),
    ceiling: Type.String(),
    isCurrent: Type.Boolean({ description: 'The recorded level belongs to the current specs.' }),
    since: Type.Optional(Type.String()),
    reason: Type.Optional(Type.String()),
    approvals: Type.Array(
      Type.Object(
        {
          level: Type.String(),
          category: Type.Optional(Type.String()),
          approval: Type.String(),
          since: Type.String(),
        },
        closed,
      ),
    ),
    tasks: Type.Object(
      {
        ended: Type.Number(),
        completed: Type.Number(),
        rated: Type.Number(),
        quality: Type.Optional(Type.Number({ description: 'Mean rating, 0 to 10.' })),
        lastTaskAt: Type.Optional(Type.String()),
        countedFrom: Type.Optional(Type.String({ description: 'Only later tasks count.' })),
        categories: Type.Optional(
          Type.Array(
            Type.Object(
              { category: Type.String(), ended: Type.Number(), completed: Type.Number(), rated: Type.Number() },
              closed,
            ),
            { description: 'The tool categories that tasks used. Absent when no task used one.' },
          ),
        ),
      },
      closed,
    ),
    tracks: Type.Array(Track),
    lowering: Type.Array(
      Type.Object(
        {
          rule: Type.String(),
          lowers: Type.Boolean(),
          detail: Type.String(),
          at: Type.Optional(Type.String({ description: 'When time alone may lower the level.' })),
        },
        closed,
      ),
    ),
    nextEvaluationAt: Type.Optional(Type.String({ description: 'When time alone may change the level.' })),
  },
  closed,
);

export type TrustReport = TrustExplanation & { readonly agent: string; readonly policy: string };

export const TrustReport = Type.Unsafe<TrustReport>(
  Type.Object(
    { agent: Type.String(), policy: Type.String(), ...Explanation.properties },
    { ...closed, description: 'The level of an agent and the rules that decide about it.' },
  ),
);
