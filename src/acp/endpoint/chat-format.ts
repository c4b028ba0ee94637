import { type Json, type JsonObject, member } from '../../lib/json.ts';
import { arrayAt, objectAt, textAt } from '../../models/adapter/json-members.ts';
import { readToolResult } from '../../models/adapter/tool-error-text.ts';
import type { ModelEvent, ModelMessage } from '../../models/port.ts';
import { chatUsage, chatWire, FINISH_REASONS } from '../../models/replay/wire/openai-chat.ts';
import type { ServerSentEvent } from '../../models/replay/wire/wire.ts';
import {
  type AnswerStream,
  assertExpressible,
  isEmptyList,
  isFalse,
  isOneOf,
  messagesOf,
  refused,
  requiredText,
  samplingOf,
  type ServedFormat,
  textContent,
  toolsOf,
  toolSpec,
} from './served-format.ts';

/** POST /v1/chat/completions */
export const chatFormat: ServedFormat = {
  read(body) {
    assertExpressible(body, INEXPRESSIBLE);
    const messages = messagesOf(body);
    const isSystem = (message: JsonObject): boolean => ['system', 'developer'].includes(textAt(message, 'role'));
    const names = new Map<string, string>();
    return {
      system: messages
        .flatMap((message, index) =>
          isSystem(message) ? [textContent(member(message, 'content'), `messages[${index}].content`)] : [],
        )
        .join('\n\n'),
      messages: messages.flatMap((message, index) =>
        isSystem(message) ? [] : [readMessage(message, `messages[${index}]`, names)],
      ),
      tools: toolsOf(body).map((tool, index) => readTool(tool, `tools[${index}]`)),
      ...(textAt(objectAt(body, 'response_format'), 'type') === 'json_object' ? { responseFormat: 'json' } : {}),
      ...samplingOf(body, ['max_completion_tokens', 'max_tokens']),
      isStream: member(body, 'stream') === true,
      hasUsage: member(objectAt(body, 'stream_options'), 'include_usage') === true,
    };
  },
  stream: ({ id, model }, { hasUsage }) => chatStream({ id, model, hasUsage }),
  body: (answer) => chatWire.body(answer),
  error: (type, message) => chatWire.error(type, message),
};

/** Members that would change the answer, with the values that change nothing. */
const INEXPRESSIBLE = {
  n: isOneOf(1),
  logprobs: isFalse,
  top_logprobs: isOneOf(0),
  tool_choice: isOneOf('auto'),
  response_format: (value: Json) => ['text', 'json_object'].includes(textAt(value, 'type')),
  modalities: (value: Json) => Array.isArray(value) && value.every((item) => item === 'text'),
  audio: () => false,
  functions: isEmptyList,
  function_call: isOneOf('auto', 'none'),
  stop: isEmptyList,
  web_search_options: () => false,
  logit_bias: (value: Json) => JSON.stringify(value) === '{}',
};

function readTool(tool: JsonObject, path: string): ReturnType<typeof toolSpec> {
  const given = objectAt(tool, 'function');
  if (textAt(tool, 'type') !== 'function' || given === undefined)
    throw refused(path, 'is not a function; a provider cannot act for an agent of Temper');
  return toolSpec(given, 'parameters', `${path}.function`);
}

function readMessage(message: JsonObject, path: string, names: Map<string, string>): ModelMessage {
  const content = textContent(member(message, 'content'), `${path}.content`, ['text', 'refusal']);
  switch (textAt(message, 'role')) {
    case 'user':
      return { role: 'user', text: content };
    case 'assistant': {
      const toolCalls = arrayAt(message, 'tool_calls').map((call, index) => {
        const place = `${path}.tool_calls[${index}]`;
        const called = objectAt(call, 'function');
        if (called === undefined) throw refused(place, 'must be the call of a function');
        const id = requiredText(call as JsonObject, 'id', place);
        const name = requiredText(called, 'name', `${place}.function`);
        names.set(id, name);
        return { id, name, arguments: requiredText(called, 'arguments', `${place}.function`) };
      });
      return { role: 'assistant', text: content, toolCalls };
    }
    case 'tool': {
      const toolCallId = requiredText(message, 'tool_call_id', path);
      const name = names.get(toolCallId);
      if (name === undefined) throw refused(`${path}.tool_call_id`, 'names no call before it');
      return { role: 'tool', toolCallId, name, ...readToolResult(content) };
    }
    default:
      throw refused(`${path}.role`, 'must be system, developer, user, assistant or tool');
  }
}

function chatStream({ id, model, hasUsage }: { id: string; model: string; hasUsage: boolean }): AnswerStream {
  let calls = 0;
  const chunk = (delta: JsonObject, finish: string | null = null): ServerSentEvent => ({
    data: {
      ...head(id, model),
      choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
      ...(hasUsage ? { usage: null } : {}),
    },
  });
  const end = ({ stopReason, usage }: Extract<ModelEvent, { type: 'end' }>): ServerSentEvent[] => [
    chunk({}, FINISH_REASONS[stopReason]),
    ...(hasUsage ? [{ data: { ...head(id, model), choices: [], usage: chatUsage(usage) } }] : []),
    { data: '[DONE]' },
  ];
  return {
    start: () => [chunk({ role: 'assistant', content: '' })],
    next(event) {
      switch (event.type) {
        case 'text':
          return [chunk({ content: event.text })];
        case 'reasoning':
          return [chunk({ reasoning_content: event.text })];
        case 'tool-call': {
          const { id: callId, name, arguments: input } = event.call;
          const call = { index: calls, id: callId, type: 'function', function: { name, arguments: input } };
          calls += 1;
          return [chunk({ tool_calls: [call] })];
        }
        case 'provider':
          return [];
        case 'end':
          return end(event);
      }
    },
  };
}

function head(id: string, model: string): JsonObject {
  return { id, object: 'chat.completion.chunk', created: 0, model };
}
