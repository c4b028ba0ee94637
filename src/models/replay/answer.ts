import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { TokenUsage, ToolCall } from '../port.ts';
import type { ReplayConversation } from './conversation.ts';
import { fillText, fillValue } from './script/fill.ts';
import type { ReplayAnswer } from './script/script.ts';
import type { FilledAnswer } from './wire/wire.ts';

/** Estimate for most models: a token has about four characters. */
const CHARACTERS_PER_TOKEN = 4;

/** The answer of a rule with its references filled from the conversation. Pure; the same conversation gives the same answer. */
export function fillAnswer(answer: ReplayAnswer, conversation: ReplayConversation): FilledAnswer {
  const answered = conversation.messages.filter((message) => message.role === 'assistant').length;
  const text = fillText(answer.text ?? '', conversation);
  const reasoning = fillText(answer.reasoning ?? '', conversation);
  const calls = (answer.toolCalls ?? []).map((call, index): ToolCall => {
    const given = fillValue(call.arguments, conversation);
    return {
      id: call.id ?? `call_${answered + 1}_${index + 1}`,
      name: call.name,
      arguments: typeof given === 'string' ? given : JSON.stringify(given),
    };
  });
  const stopReason = answer.stopReason ?? (calls.length > 0 ? 'tool-calls' : 'stop');
  const filled: FilledAnswer = {
    id: `replay-${answered + 1}`,
    model: conversation.model,
    text,
    reasoning,
    calls: stopReason === 'length' ? lastCutInHalf(calls) : calls,
    stopReason,
    usage: { ...estimatedUsage(conversation, text + reasoning, calls), ...answer.usage },
  };
  if (answer.inBandError) {
    const { type = 'server_error', message = 'scripted error' } = answer.inBandError;
    filled.inBandError = { type, message };
  }
  return filled;
}

function lastCutInHalf(calls: ToolCall[]): ToolCall[] {
  const last = calls.at(-1);
  if (!last) return calls;
  return [...calls.slice(0, -1), { ...last, arguments: last.arguments.slice(0, last.arguments.length / 2) }];
}

function estimatedUsage(conversation: ReplayConversation, output: string, calls: ToolCall[]): TokenUsage {
  const inputLength = conversation.system.length + JSON.stringify(conversation.messages).length;
  const callsLength = calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return {
    inputTokens: Math.ceil(inputLength / CHARACTERS_PER_TOKEN),
    outputTokens: Math.ceil((output.length + callsLength) / CHARACTERS_PER_TOKEN),
    cachedInputTokens: 0,
  };
}

/** The error when no rule matches; shows the message that the script would have to match. */
export function noMatchError(conversation: ReplayConversation): TemperError {
  const last = conversation.messages.at(-1);
  const name = last?.role === 'tool' ? ` of "${last.name}"${last.isError ? ' (an error)' : ''}` : '';
  const description = last
    ? `the last message, role ${last.role}${name}, is: ${printable(last.text, 400)}`
    : 'the conversation is empty';
  return new TemperError(
    'TEMPER_REPLAY_NO_MATCH',
    `no rule of the replay script matches this conversation; ${description}`,
  );
}
