import { member, type Json } from '../../../lib/json.ts';
import { arrayAt, countAt, textAt } from '../../adapter/json-members.ts';
import type { ModelMessage } from '../../port.ts';
import { readToolResult } from '../../adapter/tool-error-text.ts';
import { contentText, withToolNames, type ReplayConversation } from '../conversation.ts';
import { requiredText, unknownRole } from './read-body.ts';
import { responseEvents, responseItems } from './responses-events.ts';
import { responseBody } from './responses-body.ts';
import type { ReplayWireFormat } from './wire.ts';

/** POST /v1/responses */
export const responsesWire: ReplayWireFormat = {
  read(body): ReplayConversation {
    const limit = countAt(body, 'max_output_tokens');
    return {
      model: requiredText(body, 'model'),
      system: textAt(body, 'instructions'),
      messages: withToolNames(inputMessages(member(body, 'input'))),
      tools: arrayAt(body, 'tools').map((tool) => textAt(tool, 'name')),
      stream: member(body, 'stream') === true,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    };
  },
  body: (answer) => responseBody(answer, responseItems(answer)),
  events: responseEvents,
  error: (type, message) => ({ error: { type, code: type, message, param: null } }),
};

function inputMessages(input: Json | undefined): ModelMessage[] {
  if (typeof input === 'string') return [{ role: 'user', text: input }];
  const messages: ModelMessage[] = [];
  for (const item of Array.isArray(input) ? input : []) addItem(messages, item);
  return messages;
}

/** An answer with its calls is one ModelMessage and several wire items. */
function addItem(messages: ModelMessage[], item: Json): void {
  const last = messages.at(-1);
  const type = textAt(item, 'type') || 'message';
  const role = textAt(item, 'role');
  if (type === 'function_call') {
    const answer = last?.role === 'assistant' ? last : undefined;
    const call = { id: textAt(item, 'call_id'), name: textAt(item, 'name'), arguments: textAt(item, 'arguments') };
    if (answer) answer.toolCalls.push(call);
    else messages.push({ role: 'assistant', text: '', toolCalls: [call] });
  } else if (type === 'function_call_output') {
    const result = readToolResult(contentText(member(item, 'output')));
    messages.push({ role: 'tool', toolCallId: requiredText(item, 'call_id'), name: '', ...result });
  } else if (type === 'message' && role === 'user') {
    messages.push({ role: 'user', text: messageText(item) });
  } else if (type === 'message' && role === 'assistant') {
    messages.push({ role: 'assistant', text: messageText(item), toolCalls: [] });
  } else {
    throw unknownRole(role || type);
  }
}

function messageText(item: Json): string {
  return contentText(member(item, 'content'));
}
