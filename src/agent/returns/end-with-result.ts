import {
  type AgentConversation,
  type AgentConversationDeps,
  appendMessages,
  appendReply,
} from '../loop/conversation.ts';
import type { TurnOutcome } from '../message.ts';
import { finishWithText } from './message-result.ts';

type Deps = Pick<AgentConversationDeps, 'result'>;

/** The outcome of a turn whose model has given the value of the message; otherwise the outcome as it is. */
export function withResult({ result }: Deps, outcome: TurnOutcome | undefined): TurnOutcome | undefined {
  if (result === undefined) return outcome;
  if (result.reply() === undefined && outcome?.finishReason === 'complete') finishWithText(result, outcome.reply);
  const reply = result.reply();
  return reply === undefined ? outcome : { reply, finishReason: 'complete', format: 'json' };
}

/** The outcome with this reply; undefined when it is not the value that the agent must return. */
export function resultOf({ result }: Deps, reply: string): TurnOutcome | undefined {
  if (result === undefined) return { reply, finishReason: 'complete' };
  result.reset();
  return finishWithText(result, reply) ? { reply, finishReason: 'complete', format: 'json' } : undefined;
}

/** Stores the value as the answer of the message, or asks for it when the model has answered without one. */
export async function requireResult(
  deps: AgentConversationDeps,
  conversation: AgentConversation,
  outcome: TurnOutcome | undefined,
): Promise<TurnOutcome | undefined> {
  const { result } = deps;
  if (result === undefined || outcome?.finishReason !== 'complete') return outcome;
  if (outcome.format === 'json') {
    await appendReply(deps, conversation, outcome.reply);
    return outcome;
  }
  await appendMessages(deps, conversation, [{ role: 'user', text: result.reminder() }]);
  return undefined;
}
