import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import type {
  Envelope as BusEnvelope,
  FinishReason as ReplyEnd,
  MessageDraft,
  Receipt as BusReceipt,
  Task,
} from '../bus/port.ts';
import { MESSAGE_SOURCES } from '../bus/port.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { AnyJson, Code, SessionId, text } from '../tools/event-schema/parts.ts';
import { Assignment } from './polls/assignment-schema.ts';
import { MAX_POLL_SECONDS, MAX_TASK_WAIT_SECONDS } from './polls/waits.ts';
import { PodReports, ToolCallReport } from './report-schemas.ts';
import { SessionAppend, SessionHistory } from './session-schemas.ts';
import { RegisteredTools } from './tool-schemas.ts';
import {
  AgentName,
  AnyObject,
  DeliveryToken,
  describes,
  DigestText,
  TEXT_CHARACTERS,
  Timestamp,
} from './schema-parts.ts';

export const FinishReason = describes<ReplyEnd>()(
  Type.Enum(['complete', 'truncated', 'refusal'], {
    description: '`truncated` at a limit; `refusal` when the model or a limit refused to answer.',
  }),
);

const Envelope = describes<Omit<BusEnvelope, 'ancestors' | 'asker'>>()(
  Type.Object(
    {
      id: Type.String(),
      from: Type.String(),
      to: Type.String(),
      session: Type.String(),
      text: Type.String(),
      root: Type.String(),
      depth: Type.Integer(),
      deadline: Timestamp,
      time: Timestamp,
      source: Type.Optional(
        Type.Enum([...MESSAGE_SOURCES], {
          description: 'Who caused the message. `Reply` answers a message that asked.',
        }),
      ),
      tainted: Type.Optional(
        Type.Boolean({ description: 'The session of the sender has untrusted content, and so has this session.' }),
      ),
      call: Type.Optional(
        Type.Object(
          {
            tool: Type.String({ description: 'Name of the tool.' }),
            digest: Type.Optional(Type.Unsafe<Digest>({ ...DigestText, description: 'Of a forged tool.' })),
            input: AnyObject,
          },
          {
            ...closed,
            description:
              'A call that a program of a user makes in place of a text. Only in deliveries to pods whose request has the header `Temper-Accept-Messages: call`.',
          },
        ),
      ),
      answers: Type.Optional(Type.String({ description: 'With source `Reply`: the ticket that it answers.' })),
      traceparent: Type.Optional(Type.String({ description: 'W3C Trace Context.' })),
    },
    { ...closed, description: 'A message, as it is delivered.' },
  ),
);

export const NextMessageRequest = Type.Object(
  {
    waitSeconds: Type.Number({ minimum: 0, maximum: MAX_POLL_SECONDS, description: 'Seconds to wait for a message.' }),
    restarted: Type.Optional(
      Type.Boolean({
        description:
          "Set until the process has received its first response: the message that the pod's previous process had in flight is redelivered.",
      }),
    ),
  },
  closed,
);
export type NextMessageRequest = Static<typeof NextMessageRequest>;

export const PodDelivery = Type.Object(
  {
    message: Envelope,
    deliveryToken: DeliveryToken,
    ackTimeoutMs: Type.Number({
      description: 'Acknowledgement timeout: without an outcome or an extension by then the message is redelivered.',
    }),
    session: Type.Optional(
      Type.Object(
        {
          history: Type.Optional(SessionHistory),
          tools: RegisteredTools,
        },
        {
          ...closed,
          description:
            'The session of the message. The pod requests what is absent: a large history, or all when the gateway could not read it.',
        },
      ),
    ),
  },
  { ...closed, description: 'A message and the token of its delivery.' },
);
export type PodDelivery = Static<typeof PodDelivery>;

export const NoMessage = Type.Object(
  {
    assignment: Type.Optional(Assignment),
  },
  {
    ...closed,
    description:
      'No message arrived, for a request with the header `Temper-Assignment-Version`: with the assignment when it has another version, and empty when the wait ended.',
  },
);
export type NoMessage = Static<typeof NoMessage>;

const RequestName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,99}$', description: 'Name of an ApprovalRequest.' });

export const CallApprovalRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    tool: Type.String({ minLength: 1, maxLength: 63, description: 'Name of the tool.' }),
    input: Type.Unsafe<Static<typeof AnyJson>>({ ...AnyJson, description: 'The arguments of the call.' }),
    callKey: Type.String({
      pattern: '^[!-~]{1,1024}$',
      description: 'The idempotency key of the call: equal for each attempt at it.',
    }),
  },
  closed,
);
export type CallApprovalRequest = Static<typeof CallApprovalRequest>;

export const CallApproval = Type.Object(
  {
    request: RequestName,
    decision: Type.Enum(['Pending', 'Approve', 'Deny', 'Expired'], {
      description: 'What was decided about the call; `Expired` after the timeout of the policy.',
    }),
    by: Type.String({ maxLength: 300, description: 'Who decided; empty while the request is pending.' }),
    reason: Type.String({ maxLength: 2_048, description: 'The reason for the decision.' }),
  },
  { ...closed, description: 'The state of a request for an approval.' },
);
export type CallApproval = Static<typeof CallApproval>;

export const UseApprovalRequest = Type.Object(
  { deliveryToken: DeliveryToken, request: RequestName },
  { ...closed, description: 'The approved call starts now. Each attempt at the call needs its own `Idempotency-Key`.' },
);
export type UseApprovalRequest = Static<typeof UseApprovalRequest>;

/** The requests that a message waits for. */
const ParkedRequests = Type.Array(RequestName, { minItems: 1, maxItems: 16 });

/** What a pod has not sent before its message ends. */
const outcomeContent = {
  append: Type.Optional(SessionAppend),
  reports: Type.Optional(
    Type.Object(
      {
        key: Type.String({ pattern: '^[!-~]{1,128}$', description: 'The idempotency key of the reports.' }),
        batch: PodReports,
      },
      { ...closed, description: 'As in the request for reports.' },
    ),
  ),
  toolCalls: Type.Optional(ToolCallReport),
};
const OutcomeContent = Type.Object(outcomeContent, closed);
export type OutcomeContent = Static<typeof OutcomeContent>;

export const DeliveryOutcome = Type.Union(
  [
    Type.Object(
      {
        ...outcomeContent,
        deliveryToken: DeliveryToken,
        action: Type.Literal('ack'),
        reply: text(TEXT_CHARACTERS, 'The reply of the agent.', 0),
        finishReason: FinishReason,
      },
      closed,
    ),
    Type.Object(
      {
        ...outcomeContent,
        deliveryToken: DeliveryToken,
        action: Type.Literal('retry'),
        delayMs: Type.Integer({ minimum: 0, maximum: 3_600_000 }),
      },
      closed,
    ),
    Type.Object(
      {
        ...outcomeContent,
        deliveryToken: DeliveryToken,
        action: Type.Literal('reject'),
        code: Code,
        message: text(10_000, 'For users.', 0),
      },
      closed,
    ),
    Type.Object(
      { ...outcomeContent, deliveryToken: DeliveryToken, action: Type.Literal('park'), requests: ParkedRequests },
      closed,
    ),
    Type.Object({ deliveryToken: DeliveryToken, action: Type.Literal('extend') }, closed),
  ],
  {
    description:
      'The outcome of a delivery: `ack` with the reply, `retry`, `reject`, or `park` until one of the requests is decided; `extend` restarts the acknowledgement timeout. `append` and `reports` are stored before the outcome takes effect.',
  },
);
export type DeliveryOutcome = Static<typeof DeliveryOutcome>;

const Draft = describes<MessageDraft>()(
  Type.Object(
    {
      to: AgentName,
      session: SessionId,
      text: text(TEXT_CHARACTERS, 'Text of the message.'),
      tainted: Type.Optional(
        Type.Boolean({ description: 'The session has untrusted content that the gateway may not know of.' }),
      ),
    },
    closed,
  ),
);

export const SendMessageRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    draft: Draft,
    ask: Type.Optional(
      Type.Object(
        { wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 600 })) },
        { ...closed, description: 'Present: the sender wants the answer. `wait` is the argument of its tool call.' },
      ),
    ),
  },
  {
    ...closed,
    description:
      'A message of an agent: the gateway takes root and deadline from the delivery token, and its depth plus one.',
  },
);
export type SendMessageRequest = Static<typeof SendMessageRequest>;

export const TaskRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    ticket: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'Id of a message that asked.' }),
    waitSeconds: Type.Number({ minimum: 0, maximum: MAX_TASK_WAIT_SECONDS }),
  },
  { ...closed, description: 'Reads the state of a message that asked, from the session that asked.' },
);
export type TaskRequest = Static<typeof TaskRequest>;

export const TaskState = describes<Task>()(
  Type.Object(
    {
      ticket: Type.String(),
      agent: Type.String({ description: 'The agent that was asked.' }),
      state: Type.Enum(['Pending', 'Answered', 'Failed', 'Delivered'], {
        description: '`Delivered`: the session has the answer as a message, or another message of the session took it.',
      }),
      text: Type.Optional(Type.String({ description: 'The answer.' })),
      finishReason: Type.Optional(FinishReason),
      tainted: Type.Optional(Type.Boolean({ description: 'The session that gave the answer has untrusted content.' })),
      code: Type.Optional(Type.Unsafe<ErrorCode>(Code)),
      reason: Type.Optional(Type.String({ description: 'Why there is no answer.' })),
    },
    { ...closed, description: 'The state of a message that asked.' },
  ),
);

export const Receipt = describes<BusReceipt>()(
  Type.Object(
    {
      id: Type.String(),
      duplicate: Type.Boolean({ description: 'A message with this key was sent before; `id` is that of the first.' }),
    },
    closed,
  ),
);
