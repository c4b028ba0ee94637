import { isErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { failedResult, progressOf } from '../../mcp/server/results.ts';
import type { ServedCall, ServedResult, ServedTools } from '../../mcp/server/served.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { sendUserMessage, type UserMessageToSend } from '../users/messages.ts';
import { ASK_AGENT, parseAsk, type Ticket, ticketText } from './ask-tool.ts';

/** Less than proxies leave a connection open. */
const MAX_WAIT_MS = 240_000;

export interface McpAgentDeps {
  readonly deps: GatewayDeps;
  readonly state: AgentState;
  readonly caller: Pick<UserMessageToSend, 'namespace' | 'traceparent' | 'logFields'>;
  /** Aborts when the client disconnects or the gateway drains. */
  readonly signal: AbortSignal;
}

/** An agent for one request of a client. Every replica answers for every message: what is known about one is in its ticket. */
export class McpAgent implements ServedTools {
  readonly #asked: McpAgentDeps;

  constructor(asked: McpAgentDeps) {
    this.#asked = asked;
  }

  async list(): Promise<readonly ToolDescriptor[]> {
    return [ASK_AGENT];
  }

  async call(name: string, input: JsonObject, call: ServedCall): Promise<ServedResult> {
    try {
      if (name === ASK_AGENT.name) return await this.#ask(input, call);
      const message = `there is no tool "${printable(name, 80)}"; ask the agent with ${ASK_AGENT.name}`;
      return failedResult({ code: 'TEMPER_TOOL_NOT_FOUND', message });
    } catch (error) {
      if (isTemperError(error)) return failedResult(error);
      const { deps, caller } = this.#asked;
      deps.log.error({ error, ...caller.logFields }, 'a call over MCP failed');
      return failedResult({ code: 'TEMPER_INTERNAL', message: messageOf(error, 300) });
    }
  }

  async #ask(input: JsonObject, call: ServedCall): Promise<ServedResult> {
    const { deps, state, caller } = this.#asked;
    const asked = parseAsk(input);
    if ('ticket' in asked) return this.#wait(asked.session, asked.ticket, call);
    const key = deps.ids.next('message');
    const { id, session, after, waitsFor = [] } = await sendUserMessage(state, { ...caller, ...asked, key }, deps);
    const ticket = { message: id, after, skip: 0 };
    // An earlier message of the session is not decided about.
    if (waitsFor.length > 0) return pending(waitsFor, session, ticket);
    return this.#wait(session, ticket, call);
  }

  async #wait(session: string, ticket: Ticket, call: ServedCall): Promise<ServedResult> {
    const { deps, state, signal: left } = this.#asked;
    const { message } = ticket;
    const signal = AbortSignal.any([left, call.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
    let { after, skip } = ticket;
    for await (const line of deps.events.follow(state.uid, session, { after, skip, signal, failOnStoreLoss: true })) {
      if (line.kind !== 'event') {
        if (line.message === message) return endResult(line, session);
        continue;
      }
      [after, skip] = [line.seq, line.skip ?? 0];
      if (line.event.rootMessage !== message) continue;
      const progress = progressOf(line.event);
      if (progress !== undefined) call.report(progress);
      if (line.event.type === 'turn-parked') return pending(line.event.requests, session, { message, after, skip });
    }
    return waitOn('TEMPER_TIMEOUT', 'the agent has not answered yet', session, { message, after, skip });
  }
}

type End = { kind: 'reply'; text: string; finishReason: string } | { kind: 'failed'; code: string; text: string };

function endResult(line: End, session: string): ServedResult {
  if (line.kind === 'failed') {
    const code = isErrorCode(line.code) ? line.code : 'TEMPER_INTERNAL';
    return failedResult({ code, message: printable(line.text, 1_000) });
  }
  const { text: reply, finishReason } = line;
  return { text: reply, isError: false, structured: { reply, finishReason, session } };
}

function pending(requests: readonly string[], session: string, ticket: Ticket): ServedResult {
  const names = requests.map((name) => printable(name, 253));
  const how = names.map((name) => `kubectl temper approve ${name} --reason … (or kubectl temper deny)`).join('; ');
  const reason = `the agent waits for the decision of a user: ${how}`;
  const [first] = names;
  const result = waitOn('TEMPER_APPROVAL_PENDING', reason, session, ticket);
  return first === undefined ? result : { ...result, approvalRequest: first };
}

function waitOn(
  code: 'TEMPER_APPROVAL_PENDING' | 'TEMPER_TIMEOUT',
  reason: string,
  session: string,
  ticket: Ticket,
): ServedResult {
  const next = JSON.stringify({ session, ticket: ticketText(ticket) });
  return failedResult({ code, message: `${reason}. To wait on, call ${ASK_AGENT.name} with ${next}` });
}
