import { member, type Json, type JsonObject } from '../../../lib/json.ts';
import { arrayAt, countAt, objectAt, textAt } from '../../adapter/json-members.ts';
import type { ModelMessage, StopReason, TokenUsage, ToolCall } from '../../port.ts';
import { readToolResult } from '../../adapter/tool-error-text.ts';
import { contentText, withToolNames, type ReplayConversation } from '../conversation.ts';
import { requiredObjects, requiredText, unknownRole } from './read-body.ts';
import { textChunks, type ReplayWireFormat, type ServerSentEvent } from './wire.ts';

export const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
  other: 'unknown',
};

/** POST /v1/chat/completions */
export const chatWire: ReplayWireFormat = {
  read(body): ReplayConversation {
    const messages = requiredObjects(body, 'messages');
    const isSystem = (message: Json): boolean => ['system', 'developer'].includes(textAt(message, 'role'));
    const limit = countAt(body, 'max_completion_tokens') ?? countAt(body, 'max_tokens');
    return {
      model: requiredText(body, 'model'),
      system: messages
        .filter(isSystem)
        .map((message) => contentText(message['content']))
        .join('\n'),
      messages: withToolNames(messages.filter((message) => !isSystem(message)).map(readMessage)),
      tools: arrayAt(body, 'tools').map((tool) => textAt(objectAt(tool, 'function'), 'name')),
      stream: member(body, 'stream') === true,
      ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    };
  },
  body(answer) {
    if (answer.inBandError) return chatWire.error(answer.inBandError.type, answer.inBandError.message);
    const message: JsonObject = { role: 'assistant', content: answer.text === '' ? null : answer.text, refusal: null };
    if (answer.reasoning !== '') message['reasoning_content'] = answer.reasoning;
    if (answer.calls.length > 0) message['tool_calls'] = answer.calls.map(wireCall);
    const choice = { index: 0, message, finish_reason: FINISH_REASONS[answer.stopReason], logprobs: null };
    return {
      id: answer.id,
      object: 'chat.completion',
      created: 0,
      model: answer.model,
      choices: [choice],
      usage: chatUsage(answer.usage),
    };
  },
  events(answer): ServerSentEvent[] {
    const chunk = (delta: JsonObject, finish: string | null = null): ServerSentEvent => ({
      data: {
        id: answer.id,
        object: 'chat.completion.chunk',
        created: 0,
        model: answer.model,
        choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
        usage: null,
      },
    });
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...textChunks(answer.reasoning, 24).map((piece) => chunk({ reasoning_content: piece })),
      ...textChunks(answer.text, 24).map((piece) => chunk({ content: piece })),
      ...callDeltas(answer.calls).map((delta) => chunk({ tool_calls: [delta] })),
    ];
    if (answer.inBandError)
      return [...chunks, { data: chatWire.error(answer.inBandError.type, answer.inBandError.message) }];
    const last = {
      id: answer.id,
      object: 'chat.completion.chunk',
      created: 0,
      model: answer.model,
      choices: [],
      usage: chatUsage(answer.usage),
    };
    return [...chunks, chunk({}, FINISH_REASONS[answer.stopReason]), { data: last }, { data: '[DONE]' }];
  },
  error: (type, message) => ({ error: { type, code: type, message, param: null } }),
};

function readMessage(message: JsonObject): ModelMessage {
  const content = contentText(message['content']);
  switch (textAt(message, 'role')) {
    case 'user':
      return { role: 'user', text: content };
    case 'assistant': {
      const toolCalls = arrayAt(message, 'tool_calls').map((call): ToolCall => {
        const called = objectAt(call, 'function');
        return { id: textAt(call, 'id'), name: textAt(called, 'name'), arguments: textAt(called, 'arguments') };
      });
      return { role: 'assistant', text: content, toolCalls };
    }
    case 'tool':
      return { role: 'tool', toolCallId: requiredText(message, 'tool_call_id'), name: '', ...readToolResult(content) };
    default:
      throw unknownRole(message['role']);
  }
}

function wireCall(call: ToolCall): JsonObject {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } };
}

/** Deltas of all calls, interleaved, as servers send them that generate calls in parallel. */
function callDeltas(calls: ToolCall[]): JsonObject[] {
  const heads = calls.map((call, index) => ({
    index,
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: '' },
  }));
  const rows = calls.map((call) => textChunks(call.arguments, 16));
  const longest = Math.max(0, ...rows.map((row) => row.length));
  const deltas: JsonObject[] = [];
  for (let column = 0; column < longest; column += 1) {
    for (const [index, row] of rows.entries()) {
      const piece = row[column];
      if (piece !== undefined) deltas.push({ index, function: { arguments: piece } });
    }
  }
  return [...heads, ...deltas];
}

export function chatUsage({ inputTokens, outputTokens, cachedInputTokens }: TokenUsage): JsonObject {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}
