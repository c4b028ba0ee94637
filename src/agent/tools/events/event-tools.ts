import { TemperError } from '../../../lib/errors.ts';
import { type Json, textAt } from '../../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../../policy/types.ts';
import { policyDenied } from '../../../tools/authorize.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import type { EventCaller, Events } from './port.ts';

export interface EventToolDeps {
  /** Absent for an agent that is alone; every call then fails with TEMPER_NOT_FOUND. */
  events?: (caller: EventCaller) => Events;
  isTainted: (caller: CallerContext) => boolean;
  /** Evaluates the agent's current policy for one subject or pattern. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
}

const SUBJECT = { type: 'string', minLength: 1, maxLength: 128 };
const ID = { type: 'string', minLength: 1, maxLength: 64 };
const COMMON = { category: 'communication', action: 'comms:internal', locality: 'Brokered' } as const;

export const PUBLISH_TOOL: ToolDescriptor = {
  name: 'event_publish',
  description:
    'Publish an event to the agents of the namespace that wait for its subject. Gives {id, messages, refused}: how many agents get a message.',
  inputSchema: {
    type: 'object',
    properties: {
      subject: { ...SUBJECT, description: 'Tokens joined by dots, such as orders.paid' },
      data: { description: 'What happened, as JSON of at most 8 KiB' },
      to: { type: 'string', minLength: 1, maxLength: 63, description: 'Only this agent' },
      ttlSeconds: { type: 'integer', minimum: 1, maximum: 3_600, description: 'Of no use afterwards' },
    },
    required: ['subject'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { id: { type: 'string' }, messages: { type: 'integer' }, refused: { type: 'integer' } },
    required: ['id', 'messages', 'refused'],
    additionalProperties: false,
  },
  sideEffects: true,
  examples: [{ subject: 'orders.paid', data: { order: 1207, total: 49.5 }, ttlSeconds: 600 }],
  failures: [
    {
      code: 'TEMPER_EVENT_REFUSED',
      when: 'the subject or the data is not valid, or too many agents would get the event',
    },
  ],
  ...COMMON,
};

export const SUBSCRIBE_TOOL: ToolDescriptor = {
  name: 'event_subscribe',
  description:
    'Get a message in this session for each event whose subject matches the pattern: "*" is one token, a ">" at the end the rest. Gives {id, expiresAt}.',
  inputSchema: {
    type: 'object',
    properties: {
      subject: { ...SUBJECT, description: 'A pattern such as orders.*' },
      message: {
        type: 'string',
        minLength: 1,
        maxLength: 2_048,
        description:
          'The message, with {{event}}, {{event.MEMBER}}, {{subject}}, {{source}}, {{agent}}, {{time}}, {{id}}',
      },
      maxFires: { type: 'integer', minimum: 1, maximum: 1_000_000, description: 'At most so many messages' },
      ttlSeconds: { type: 'integer', minimum: 1, maximum: 2_592_000, description: 'A day when absent' },
    },
    required: ['subject'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { id: { type: 'string' }, expiresAt: { type: 'string' } },
    required: ['id', 'expiresAt'],
    additionalProperties: false,
  },
  sideEffects: true,
  examples: [{ subject: 'orders.*', message: 'Order {{event.order}}: {{subject}}. Check it.', maxFires: 20 }],
  ...COMMON,
};

export const UNSUBSCRIBE_TOOL: ToolDescriptor = {
  name: 'event_unsubscribe',
  description: 'End a subscription.',
  inputSchema: { type: 'object', properties: { id: ID }, required: ['id'], additionalProperties: false },
  outputSchema: {
    type: 'object',
    properties: { ended: { type: 'boolean' } },
    required: ['ended'],
    additionalProperties: false,
  },
  sideEffects: true,
  ...COMMON,
};

export const SUBSCRIPTIONS_TOOL: ToolDescriptor = {
  name: 'event_subscriptions',
  description: 'List your subscriptions to events.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  sideEffects: false,
  ...COMMON,
};

/** `event_publish`, `event_subscribe`, `event_unsubscribe` and `event_subscriptions`. The port decides about each request. */
export function eventTools(deps: EventToolDeps): Tool[] {
  const of = (caller: CallerContext): Events => eventsOf(deps, caller);
  return [
    checkedTool({
      descriptor: PUBLISH_TOOL,
      check: (input, caller) => assertAllowed(deps.decide(caller, { kind: 'Publish', subject: subjectIn(input) })),
      call: (input, caller) => of(caller).publish(input, caller.op),
    }),
    checkedTool({
      descriptor: SUBSCRIBE_TOOL,
      check: (input, caller) => assertAllowed(deps.decide(caller, { kind: 'Subscribe', pattern: subjectIn(input) })),
      call: (input, caller) => of(caller).subscribe(input, caller.op),
    }),
    { descriptor: UNSUBSCRIBE_TOOL, call: (input, caller) => of(caller).unsubscribe(idIn(input), caller.op) },
    { descriptor: SUBSCRIPTIONS_TOOL, call: (_input, caller) => of(caller).list(caller.op) },
  ];
}

function eventsOf({ events, isTainted }: EventToolDeps, caller: CallerContext): Events {
  if (events !== undefined) return events({ session: caller.session, isTainted: isTainted(caller) });
  throw new TemperError('TEMPER_NOT_FOUND', 'there are no events: this agent runs alone');
}

function assertAllowed(decision: Decision): void {
  if (decision.effect !== 'Allow') throw policyDenied(decision);
}

function idIn(input: Json): string {
  return textAt(input, ['id']);
}

function subjectIn(input: Json): string {
  return textAt(input, ['subject']);
}
