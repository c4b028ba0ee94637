import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { closed } from '../../api/v1alpha1/common.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { SessionId, text } from '../../tools/event-schema/parts.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { UserMessageRequest } from '../../gateway-api/user-schemas.ts';

/** Where a message is read on: its id, and the sequence and the events behind the last line that was read. */
export interface Ticket {
  readonly message: string;
  readonly after: number;
  readonly skip: number;
  /** The message is a call of a tool. */
  readonly isCall: boolean;
}

const TICKET = /^(msg-[0-9a-f]{32})\.(\d{1,16})\.(\d{1,3})(\.call)?$/;

const Input = Type.Object(
  {
    text: Type.Optional(UserMessageRequest.properties.text),
    session: Type.Optional(SessionId),
    ticket: Type.Optional(
      text(
        80,
        'Wait for the reply to an earlier message, or for the result of a call of a tool, which has this ticket, instead of sending a message.',
      ),
    ),
  },
  closed,
);
const checked = Compile(Input);

export type AskInput =
  | { readonly text: string; readonly session?: string }
  | { readonly session: string; readonly ticket: Ticket };

/** The agent as a tool. */
export const ASK_AGENT: ToolDescriptor = {
  name: 'ask_agent',
  description:
    'Send the agent a message and wait for its reply. A session continues an earlier conversation. A message without a reply yet, and a call of a tool without a result yet, has a ticket: call again with its session and ticket, and without text, to wait on.',
  inputSchema: JSON.parse(JSON.stringify(Input)) as JsonObject,
  outputSchema: {
    type: 'object',
    properties: {
      reply: { type: 'string' },
      finishReason: { type: 'string', enum: ['complete', 'refusal', 'truncated'] },
      session: { type: 'string' },
    },
    required: ['reply', 'finishReason', 'session'],
  },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
};

/** Throws TEMPER_TOOL_INPUT_INVALID. */
export function parseAsk(input: JsonObject): AskInput {
  const [problem] = checked.Errors(input);
  if (problem !== undefined) throw invalid(`${problem.instancePath} ${problem.message}`.trim());
  const { text: message, session, ticket } = input as Static<typeof Input>;
  if ((message === undefined) === (ticket === undefined)) throw invalid('give a text, or a session with its ticket');
  if (message !== undefined) return { text: message, ...(session === undefined ? {} : { session }) };
  const known = ticketIn(ticket ?? '');
  if (known === undefined || session === undefined)
    throw invalid('the ticket is not one that a call gave with its session');
  return { session, ticket: known };
}

function ticketIn(stated: string): Ticket | undefined {
  const [, message, after, skip, call] = TICKET.exec(stated) ?? [];
  return message === undefined
    ? undefined
    : { message, after: Number(after), skip: Number(skip), isCall: call !== undefined };
}

export function ticketText({ message, after, skip, isCall }: Ticket): string {
  return `${message}.${after}.${skip}${isCall ? '.call' : ''}`;
}

function invalid(message: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}
