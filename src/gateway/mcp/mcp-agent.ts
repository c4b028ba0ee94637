import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { failedResult, progressOf } from '../../mcp/server/results.ts';
import type { ServedCall, ServedResult, ServedTools } from '../../mcp/server/served.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { AgentState } from '../agent-state.ts';
import { callableTools } from '../client-calls/callable-tools.ts';
import { sendToolCall } from '../client-calls/send-call.ts';
import type { GatewayDeps } from '../deps.ts';
import { sendUserMessage, type UserMessageToSend } from '../users/messages.ts';
import type { UserMessageReceipt } from '../../gateway-api/user-api.ts';
import { ASK_AGENT, parseAsk, type Ticket } from './ask-tool.ts';
import { type MessageEnd, pendingResult, replyResult, toolResult, waitOn } from './message-results.ts';

/** Less than proxies leave a connection open. */
const MAX_WAIT_MS = 240_000;

export interface McpAgentDeps {
  readonly deps: GatewayDeps & { readonly schemas: SchemaCompiler };
  readonly state: AgentState;
  readonly caller: Pick<UserMessageToSend, 'namespace' | 'traceparent' | 'logFields'>;
  /** The session of what the client calls; a new one for each call when absent. */
  readonly session?: string | undefined;
  /** Aborts when the client disconnects or the gateway drains. */
  readonly signal: AbortSignal;
}

/** What a message gives its client. */
type ResultOf = (end: MessageEnd, session: string) => ServedResult;

/** An agent for one request of a client. Every replica answers for every message: what is known about one is in its ticket. */
export class McpAgent implements ServedTools {
  readonly #asked: McpAgentDeps;

  constructor(asked: McpAgentDeps) {
    this.#asked = asked;
  }

  async list(): Promise<readonly ToolDescriptor[]> {
    const { deps, state, session } = this.#asked;
    const tools = await callableTools(state, session, deps);
    return [ASK_AGENT, ...tools.filter(({ name }) => name !== ASK_AGENT.name)];
  }

  async call(name: string, input: JsonObject, call: ServedCall): Promise<ServedResult> {
    try {
      return name === ASK_AGENT.name ? await this.#ask(input, call) : await this.#callTool(name, input, call);
    } catch (error) {
      if (isTemperError(error)) return failedResult(error);
      const { deps, caller } = this.#asked;
      deps.log.error({ error, ...caller.logFields }, 'a call over MCP failed');
      return failedResult({ code: 'TEMPER_INTERNAL', message: messageOf(error, 300) });
    }
  }

  async #ask(input: JsonObject, call: ServedCall): Promise<ServedResult> {
    const { deps, state, caller, session } = this.#asked;
    const asked = parseAsk(input);
    if ('ticket' in asked) return this.#wait(asked.session, asked.ticket, replyResult, call);
    const key = deps.ids.next('message');
    const own = session === undefined ? {} : { session };
    const receipt = await sendUserMessage(state, { ...caller, ...own, ...asked, key }, deps);
    return this.#follow(receipt, false, replyResult, call);
  }

  async #callTool(name: string, input: JsonObject, call: ServedCall): Promise<ServedResult> {
    const { deps, state, caller, session } = this.#asked;
    const key = deps.ids.next('message');
    const own = session === undefined ? {} : { session };
    const { receipt, tool } = await sendToolCall(state, { ...caller, ...own, tool: name, input, key }, deps);
    return this.#follow(receipt, true, (end) => toolResult(end, tool), call);
  }

  async #follow(
    { id, session, after, waitsFor = [] }: UserMessageReceipt,
    isCall: boolean,
    resultOf: ResultOf,
    call: ServedCall,
  ): Promise<ServedResult> {
    const ticket: Ticket = { message: id, after, skip: 0, isCall };
    // An earlier message of the session is not decided about.
    if (waitsFor.length > 0) return pendingResult(waitsFor, session, ticket);
    return this.#wait(session, ticket, resultOf, call);
  }

  async #wait(session: string, ticket: Ticket, resultOf: ResultOf, call: ServedCall): Promise<ServedResult> {
    const { deps, state, signal: left } = this.#asked;
    const { message, isCall } = ticket;
    const signal = AbortSignal.any([left, call.signal, AbortSignal.timeout(MAX_WAIT_MS)]);
    let { after, skip } = ticket;
    for await (const line of deps.events.follow(state.uid, session, { after, skip, signal, failOnStoreLoss: true })) {
      if (line.kind !== 'event') {
        if (line.message === message) return resultOf({ ...line, isCall }, session);
        continue;
      }
      [after, skip] = [line.seq, line.skip ?? 0];
      if (line.event.rootMessage !== message) continue;
      const progress = progressOf(line.event);
      if (progress !== undefined) call.report(progress);
      if (line.event.type === 'turn-parked')
        return pendingResult(line.event.requests, session, { ...ticket, after, skip });
    }
    return waitOn('TEMPER_TIMEOUT', 'the agent has not answered yet', session, { ...ticket, after, skip });
  }
}
