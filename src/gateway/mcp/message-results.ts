import { type CallReply, parseCallReply } from '../../agent/call/call-reply.ts';
import { messageFailure } from '../../gateway-api/events/message-failure.ts';
import { isJsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { failedResult } from '../../mcp/server/results.ts';
import type { ServedResult } from '../../mcp/server/served.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { ASK_AGENT, type Ticket, ticketText } from './ask-tool.ts';

/** How a message ended. */
export type MessageEnd = { readonly isCall: boolean } & (
  | { kind: 'reply'; text: string; finishReason: string }
  | { kind: 'failed'; code: string; text: string }
);

/** The end of a message as the result of ask_agent. Of a call of a tool, the reply is its output as JSON. */
export function replyResult(end: MessageEnd, session: string): ServedResult {
  if (end.kind === 'failed') return failedResult(messageFailure(end));
  if (!end.isCall) return replyOf(end.text, end.finishReason, session);
  const result = parseCallReply(end.text);
  return result.ok ? replyOf(JSON.stringify(result.output), 'complete', session) : failedResult(result.error);
}

/** The end of a call as the result of its tool. The pod may answer anything, so it is not trusted to keep the schema of the tool. */
export function toolResult(end: MessageEnd, tool: ToolDescriptor): ServedResult {
  if (end.kind === 'failed') return failedResult(messageFailure(end));
  const result = parseCallReply(end.text);
  return result.ok ? outputOf(result, tool) : failedResult(result.error);
}

function outputOf({ output }: Extract<CallReply, { ok: true }>, { name, outputSchema }: ToolDescriptor): ServedResult {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  if (isJsonObject(output)) return { text, isError: false, structured: output };
  if (outputSchema?.['type'] !== 'object') return { text, isError: false };
  const message = `the output of "${printable(name, 80)}" is not an object, as its schema says`;
  return failedResult({ code: 'TEMPER_TOOL_OUTPUT_INVALID', message });
}

function replyOf(reply: string, finishReason: string, session: string): ServedResult {
  return { text: reply, isError: false, structured: { reply, finishReason, session } };
}

export function pendingResult(requests: readonly string[], session: string, ticket: Ticket): ServedResult {
  const names = requests.map((name) => printable(name, 253));
  const how = names.map((name) => `kubectl temper approve ${name} --reason … (or kubectl temper deny)`).join('; ');
  const reason = `the agent waits for the decision of a user: ${how}`;
  const [first] = names;
  const result = waitOn('TEMPER_APPROVAL_PENDING', reason, session, ticket);
  return first === undefined ? result : { ...result, approvalRequest: first };
}

export function waitOn(
  code: 'TEMPER_APPROVAL_PENDING' | 'TEMPER_TIMEOUT',
  reason: string,
  session: string,
  ticket: Ticket,
): ServedResult {
  const next = JSON.stringify({ session, ticket: ticketText(ticket) });
  return failedResult({ code, message: `${reason}. To wait on, call ${ASK_AGENT.name} with ${next}` });
}
