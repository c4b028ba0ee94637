import type { MessageCall } from '../../bus/port.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import { isRepeatable } from '../history/repeatable.ts';
import type { AgentProvider, ProviderHost, ProviderTask } from '../provider/port.ts';
import { type CallReply, callReplyText, replyOfResult } from './call-reply.ts';

/**
 * Makes one call in place of a model. The session gets the call as an answer with a tool call and its result, as if a model had called the
 * tool: approvals, the resumption after a crash and later turns find what they expect.
 */
export function createCallProvider(call: MessageCall): AgentProvider {
  return {
    async run(task, host) {
      const stored = await storedResult(task, host);
      if (stored !== undefined) return answer(stored);
      const { items, parked } = await host.invoke([await openCall(call, task, host)]);
      if (parked !== undefined) return { reply: '', finishReason: 'complete', parked };
      return answer(resultIn(items));
    },
  };
}

/** The call in the session: that of an interrupted attempt, or a new one. */
async function openCall({ tool, input }: MessageCall, task: ProviderTask, host: ProviderHost): Promise<ToolCall> {
  const [pending] = task.resume?.pending ?? [];
  if (pending !== undefined) return pending;
  // Unique in the session: some providers refuse a history with an id twice.
  const made: ToolCall = { id: `client_${task.base}`, name: tool, arguments: JSON.stringify(input) };
  const { tools } = await host.offer();
  const deferrable = isRepeatable(tools.find(({ name }) => name === tool));
  await host.append([{ role: 'assistant', text: '', toolCalls: [made] }], deferrable);
  return made;
}

/** The result that an earlier attempt stored before it could end the message. */
async function storedResult({ resume }: ProviderTask, host: ProviderHost): Promise<CallReply | undefined> {
  if (resume === undefined || resume.pending.length > 0 || resume.turns === 0) return undefined;
  return resultIn((await host.history()).slice(-resume.items));
}

function resultIn(items: readonly ModelMessage[]): CallReply {
  const result = items.findLast((item) => item.role === 'tool');
  if (result?.role === 'tool') return replyOfResult(result);
  throw new TypeError('a call that was made has a result in its session');
}

function answer(reply: CallReply): { reply: string; finishReason: 'complete' } {
  return { reply: callReplyText(reply), finishReason: 'complete' };
}
