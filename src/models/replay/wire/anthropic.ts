import { member, type Json, type JsonObject } from '../../../lib/json.ts';
import { arrayAt, countAt, textAt } from '../../adapter/json-members.ts';
import type { ModelMessage, StopReason, TokenUsage, ToolCall } from '../../port.ts';
import { contentText, withToolNames, type ReplayConversation } from '../conversation.ts';
import { requiredObjects, requiredText, unknownRole } from './read-body.ts';
import { textChunks, type FilledAnswer, type ReplayWireFormat, type ServerSentEvent } from './wire.ts';

export const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  other: 'pause_turn',
};

/** POST /v1/messages */
export const anthropicWire: ReplayWireFormat = {
  read(body): ReplayConversation {
    const limit = countAt(body, 'max_tokens');
    return {
      model: requiredText(body, 'model'),
      system: contentText(member(body, 'system')),
      messages: withToolNames(requiredObjects(body, 'messages').flatMap(readMessage)),
      tools: arrayAt(body, 'tools').map((tool) => textAt(tool, 'name')),
      stream: member(body, 'stream') === true,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    };
  },
  body(answer) {
    if (answer.inBandError) return anthropicWire.error(answer.inBandError.type, answer.inBandError.message);
    const content: Json[] = [];
    if (answer.reasoning !== '') content.push({ type: 'thinking', thinking: answer.reasoning, signature: 'replay' });
    if (answer.text !== '') content.push({ type: 'text', text: answer.text });
    for (const call of answer.calls)
      content.push({ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call.arguments) });
    return {
      ...head(answer),
      content,
      stop_reason: STOP_REASONS[answer.stopReason],
      usage: anthropicUsage(answer.usage),
    };
  },
  events(answer): ServerSentEvent[] {
    const message = {
      ...head(answer),
      content: [],
      stop_reason: null,
      usage: { ...anthropicUsage(answer.usage), output_tokens: 1 },
    };
    const events: Json[] = [{ type: 'message_start', message }, { type: 'ping' }, ...contentEvents(answer)];
    if (answer.inBandError) events.push(anthropicWire.error(answer.inBandError.type, answer.inBandError.message));
    else
      events.push(
        {
          type: 'message_delta',
          delta: { stop_reason: STOP_REASONS[answer.stopReason], stop_sequence: null },
          usage: { output_tokens: answer.usage.outputTokens },
        },
        { type: 'message_stop' },
      );
    return events.map((data) => ({ name: textAt(data, 'type'), data }));
  },
  error: (type, message) => ({ type: 'error', error: { type, message } }),
};

function head(answer: FilledAnswer): JsonObject {
  return { id: answer.id, type: 'message', role: 'assistant', model: answer.model, stop_sequence: null };
}

function contentEvents(answer: FilledAnswer): Json[] {
  const events: Json[] = [];
  let index = 0;
  const block = (start: JsonObject, deltas: JsonObject[], whole = true): void => {
    events.push({ type: 'content_block_start', index, content_block: start });
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta });
    if (whole) events.push({ type: 'content_block_stop', index });
    index += 1;
  };
  if (answer.reasoning !== '')
    block(
      { type: 'thinking', thinking: '', signature: '' },
      textChunks(answer.reasoning, 24).map((thinking) => ({ type: 'thinking_delta', thinking })),
    );
  if (answer.text !== '')
    block(
      { type: 'text', text: '' },
      textChunks(answer.text, 24).map((piece) => ({ type: 'text_delta', text: piece })),
    );
  for (const [position, call] of answer.calls.entries()) {
    const cut = answer.stopReason === 'length' && position === answer.calls.length - 1;
    const deltas = textChunks(call.arguments, 16).map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
    block({ type: 'tool_use', id: call.id, name: call.name, input: {} }, deltas, !cut);
  }
  return events;
}

/** This format requires an object; text that is not JSON can only be sent in a stream. */
function inputOf(source: string): Json {
  try {
    return JSON.parse(source) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** One wire message with tool results becomes several ModelMessages. */
function readMessage(message: JsonObject): ModelMessage[] {
  const content = member(message, 'content');
  const parts = Array.isArray(content) ? content : [{ type: 'text', text: contentText(content) }];
  const textContent = contentText(parts.filter((part) => textAt(part, 'type') === 'text'));
  if (message['role'] === 'assistant') {
    const toolCalls = parts
      .filter((part) => textAt(part, 'type') === 'tool_use')
      .map((part): ToolCall => {
        const input = JSON.stringify(member(part, 'input') ?? {});
        return { id: textAt(part, 'id'), name: textAt(part, 'name'), arguments: input };
      });
    return [{ role: 'assistant', text: textContent, toolCalls }];
  }
  if (message['role'] !== 'user') throw unknownRole(message['role']);
  const results = parts
    .filter((part) => textAt(part, 'type') === 'tool_result')
    .map(
      (part): ModelMessage => ({
        role: 'tool',
        toolCallId: requiredText(part, 'tool_use_id'),
        name: '',
        text: contentText(member(part, 'content')),
        isError: member(part, 'is_error') === true,
      }),
    );
  return textContent === '' && results.length > 0 ? results : [...results, { role: 'user', text: textContent }];
}

export function anthropicUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cachedInputTokens, cacheCreationInputTokens = 0 } = usage;
  return {
    input_tokens: Math.max(0, inputTokens - cachedInputTokens - cacheCreationInputTokens),
    cache_creation_input_tokens: cacheCreationInputTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
  };
}
