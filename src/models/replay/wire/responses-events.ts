import type { JsonObject } from '../../../lib/json.ts';
import { textAt } from '../../adapter/json-members.ts';
import type { ToolCall } from '../../port.ts';
import { emptyResponse, responseBody } from './responses-body.ts';
import { textChunks, type FilledAnswer, type ServerSentEvent } from './wire.ts';

/** The output items of an answer: reasoning, message, calls. */
export function responseItems(answer: FilledAnswer): JsonObject[] {
  const items: JsonObject[] = [];
  if (answer.reasoning !== '') items.push(reasoningItem(answer));
  if (answer.text !== '') items.push(messageItem(answer, 'completed', [textPart(answer.text)]));
  for (const [position, call] of answer.calls.entries()) {
    const cut = answer.stopReason === 'length' && position === answer.calls.length - 1;
    items.push(callItem(call, cut ? 'incomplete' : 'completed', call.arguments));
  }
  return items;
}

/** The stream of an answer: every item is added, grown and done, in the order of the output. */
export function responseEvents(answer: FilledAnswer): ServerSentEvent[] {
  const items = responseItems(answer);
  const events: JsonObject[] = [
    { type: 'response.created', response: emptyResponse(answer) },
    { type: 'response.in_progress', response: emptyResponse(answer) },
  ];
  for (const [index, item] of items.entries()) {
    events.push(...itemEvents(answer, item, index));
  }
  if (answer.inBandError) {
    const { type, message } = answer.inBandError;
    events.push({ type: 'error', code: type, message, param: null });
    events.push({ type: 'response.failed', response: responseBody(answer, []) });
  } else {
    const response = responseBody(answer, items);
    events.push({ type: `response.${response['status'] as string}`, response });
  }
  return events.map((event, sequence) => ({
    name: event['type'] as string,
    data: { ...event, sequence_number: sequence },
  }));
}

function itemEvents(answer: FilledAnswer, item: JsonObject, index: number): JsonObject[] {
  const position = { item_id: item['id'] as string, output_index: index };
  const done = { type: 'response.output_item.done', output_index: index, item };
  const added = (initial: JsonObject): JsonObject => ({
    type: 'response.output_item.added',
    output_index: index,
    item: initial,
  });
  switch (textAt(item, 'type')) {
    case 'reasoning':
      return [
        added({ ...item, summary: [] }),
        ...textChunks(answer.reasoning, 24).map((delta) => ({
          type: 'response.reasoning_summary_text.delta',
          ...position,
          summary_index: 0,
          delta,
        })),
        { type: 'response.reasoning_summary_text.done', ...position, summary_index: 0, text: answer.reasoning },
        done,
      ];
    case 'message': {
      const part = { ...position, content_index: 0 };
      return [
        added(messageItem(answer, 'in_progress', [])),
        { type: 'response.content_part.added', ...part, part: textPart('') },
        ...textChunks(answer.text, 24).map((delta) => ({
          type: 'response.output_text.delta',
          ...part,
          delta,
          logprobs: [],
        })),
        { type: 'response.output_text.done', ...part, text: answer.text, logprobs: [] },
        { type: 'response.content_part.done', ...part, part: textPart(answer.text) },
        done,
      ];
    }
    default: {
      const all = item['arguments'] as string;
      return [
        added({ ...item, status: 'in_progress', arguments: '' }),
        ...textChunks(all, 16).map((delta) => ({ type: 'response.function_call_arguments.delta', ...position, delta })),
        { type: 'response.function_call_arguments.done', ...position, arguments: all },
        done,
      ];
    }
  }
}

function reasoningItem(answer: FilledAnswer): JsonObject {
  return {
    id: `rs_${answer.id}`,
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: answer.reasoning }],
  };
}

function messageItem(answer: FilledAnswer, status: string, content: JsonObject[]): JsonObject {
  return { id: `msg_${answer.id}`, type: 'message', role: 'assistant', status, content };
}

function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [] };
}

function callItem(call: ToolCall, status: string, given: string): JsonObject {
  return { id: `fc_${call.id}`, type: 'function_call', status, call_id: call.id, name: call.name, arguments: given };
}
