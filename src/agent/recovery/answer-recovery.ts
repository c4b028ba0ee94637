import type { ModelMessage } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { ModelAnswer } from '../loop/model-call.ts';
import type { NoteSink } from '../provider/port.ts';
import { recoverTextCalls } from './text-calls.ts';

/** Sent once to a model that claims an action without a call. */
export const PHANTOM_ACTION_NOTE =
  '[Your answer says that something was done, but no tool that could do it was called. Call the tool now. If nothing has to be done, repeat your answer and say what was not done.]';

/** The answer with the calls that the model wrote as text; unchanged when it has none, made calls, was cut or declined. */
export function withTextCalls(
  answer: ModelAnswer,
  visible: readonly ToolDescriptor[],
  messages: readonly ModelMessage[],
  events: NoteSink,
): ModelAnswer {
  const { text, toolCalls, stopReason } = answer;
  if (toolCalls.length > 0 || (stopReason !== 'stop' && stopReason !== 'tool-calls')) return answer;
  const recovered = recoverTextCalls(text, visible, messages);
  if (recovered === undefined) return answer;
  const names = recovered.toolCalls.map(({ name }) => name).join(', ');
  events({
    type: 'warning',
    code: 'text-tool-call',
    message: `the model wrote calls as text, which are made: ${names}`,
  });
  return { ...answer, ...recovered };
}
