import { member, type Json } from '../../lib/json.ts';
import { arrayAt, count, text } from '../json-read.ts';
import type { ModelMessage } from '../port.ts';
import { readToolResult } from '../tool-error-text.ts';
import { contentText, withToolNames, type Conversation } from './conversation.ts';
import { requiredText, unknownRole } from './read-body.ts';
import { responseEvents, responseItems } from './responses-events.ts';
import { responseBody } from './responses-body.ts';
import type { ReplayWire } from './wire.ts';

/** POST /v1/responses */
export const responsesWire: ReplayWire = {
  read(body): Conversation {
    const limit = count(body, 'max_output_tokens');
    return {
      model: requiredText(body, 'model'),
      system: text(body, 'instructions'),
      messages: withToolNames(inputMessages(member(body, 'input'))),
      tools: arrayAt(body, 'tools').map((tool) => text(tool, 'name')),
      stream: member(body, 'stream') === true,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    };
  },
  whole: (answer) => responseBody(answer, responseItems(answer)),
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
  const type = text(item, 'type') || 'message';
  const role = text(item, 'role');
  if (type === 'function_call') {
    const answer = last?.role === 'assistant' ? last : undefined;
    const call = { id: text(item, 'call_id'), name: text(item, 'name'), arguments: text(item, 'arguments') };
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
