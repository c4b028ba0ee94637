import type { HandledMessage } from '../../agent/loop/loop.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { type JsonObject, textAt } from '../../lib/json.ts';
import { progressOf } from '../../mcp/server/results.ts';
import type { ServedCall, ServedResult } from '../../mcp/server/served.ts';
import type { UserMessage } from '../../standalone/team/post.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { messageText } from '../input/message-text.ts';

/** The tool that sends the agent a message. A forged tool of this name is not offered. */
export const ASK_AGENT: ToolDescriptor = {
  name: 'ask_agent',
  description:
    'Send the agent a message and wait for its reply. It remembers the earlier messages of this connection. Leave text out to go on with a message that has no reply yet, because it waited for an approval or you stopped waiting.',
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string', minLength: 1, description: 'The message' } },
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      reply: { type: 'string' },
      finishReason: { type: 'string', enum: ['complete', 'refusal', 'truncated'] },
    },
    required: ['reply', 'finishReason'],
  },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Local',
};

/** Deadline of one message. */
const MESSAGE_TIMEOUT_MS = 24 * 3_600_000;

/** The answer to a message, or the requests that it waits for. */
export type Answered = Pick<HandledMessage, 'reply' | 'finishReason' | 'parked'>;

export interface AskedAgentDeps {
  session: string;
  now: () => number;
  newId: () => string;
  handle(message: UserMessage, op: CallOptions): Promise<Answered>;
  /** The message of the session that has not ended. */
  unended: () => Promise<UserMessage | undefined>;
  /** How a user decides about a request. */
  howToDecide(request: string): string;
}

/** The agent as a tool: one message at a time in one session. */
export class AskedAgent {
  readonly #deps: AskedAgentDeps;
  #call: ServedCall | undefined;

  constructor(deps: AskedAgentDeps) {
    this.#deps = deps;
  }

  /** Call with each event of the session. */
  observe(event: AgentEvent): void {
    const report = progressOf(event);
    if (report !== undefined) this.#call?.report(report);
  }

  async ask(input: JsonObject, call: ServedCall): Promise<ServedResult> {
    if (this.#call !== undefined)
      throw new TemperError(
        'TEMPER_SESSION_BUSY',
        'the agent works on a message of this connection; wait for its reply',
      );
    this.#call = call;
    try {
      const message = await this.#messageOf(input);
      const deadline = this.#deps.now() + MESSAGE_TIMEOUT_MS;
      return this.#resultOf(await this.#deps.handle(message, { signal: call.signal, deadline, key: message.id }));
    } finally {
      this.#call = undefined;
    }
  }

  async #messageOf(input: JsonObject): Promise<UserMessage> {
    const { session, newId, unended } = this.#deps;
    const isNew = Object.hasOwn(input, 'text');
    const open = await unended();
    if (open === undefined && !isNew) throw invalid('text is missing, and no message waits; send one as text');
    if (open === undefined) return { id: newId(), session, text: textOf(textAt(input, ['text'])) };
    if (!isNew) return open;
    throw new TemperError(
      'TEMPER_SESSION_BUSY',
      'the last message has not ended; decide about what it waits for, and call ask_agent without text',
    );
  }

  #resultOf({ reply, finishReason, parked }: Answered): ServedResult {
    if (parked === undefined) return { text: reply, isError: false, structured: { reply, finishReason } };
    const [request] = parked;
    const code = 'TEMPER_APPROVAL_PENDING';
    const how = parked.map((name) => this.#deps.howToDecide(name)).join('; ');
    const text = `${code}: the agent waits for the decision of a user: ${how}. Then call ask_agent without text`;
    return { text, isError: true, code, ...(request === undefined ? {} : { approvalRequest: request }) };
  }
}

function textOf(text: string): string {
  try {
    return messageText(text, 'text');
  } catch (error) {
    throw error instanceof TemperError ? invalid(error.message) : error;
  }
}

function invalid(message: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}
