import { type Json, type JsonObject, isJsonObject, member } from '../../lib/json.ts';
import { textAt } from '../../models/adapter/json-members.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import { anthropicWire } from '../../models/replay/wire/anthropic.ts';
import { MessagesStream } from './messages-stream.ts';
import {
  assertExpressible,
  isEmptyList,
  messagesOf,
  refused,
  requiredText,
  samplingOf,
  type ServedFormat,
  textContent,
  toolsOf,
  toolSpec,
} from './served-format.ts';

/** POST /v1/messages */
export const messagesFormat: ServedFormat = {
  read(body) {
    assertExpressible(body, INEXPRESSIBLE);
    const names = new Map<string, string>();
    return {
      system: textContent(member(body, 'system'), 'system'),
      messages: messagesOf(body).flatMap((message, index) => readMessage(message, `messages[${index}]`, names)),
      tools: toolsOf(body).map((tool, index) => readTool(tool, `tools[${index}]`)),
      ...samplingOf(body, ['max_tokens']),
      isStream: member(body, 'stream') === true,
      hasUsage: true,
    };
  },
  stream: ({ id, model }) => new MessagesStream(id, model),
  body(answer) {
    const broken = answer.calls.find((call) => !isJsonText(call.arguments));
    if (broken !== undefined) throw refused('the answer of the model', 'has a call whose arguments are not JSON');
    return anthropicWire.body(answer);
  },
  error: (type, message) => anthropicWire.error(type, message),
};

/** Members that would change the answer, with the values that change nothing. */
const INEXPRESSIBLE = {
  tool_choice: (value: Json) => textAt(value, 'type') === 'auto',
  stop_sequences: isEmptyList,
  mcp_servers: isEmptyList,
  container: () => false,
  output_config: (value: Json) => isJsonObject(value) && member(value, 'format') === undefined,
};

function readTool(tool: JsonObject, path: string): ReturnType<typeof toolSpec> {
  if (!['', 'custom'].includes(textAt(tool, 'type')))
    throw refused(path, 'is a tool of the provider; a provider cannot act for an agent of Temper');
  return toolSpec(tool, 'input_schema', path);
}

/** One message with tool results becomes several messages. What a model thought is dropped. */
function readMessage(message: JsonObject, path: string, names: Map<string, string>): ModelMessage[] {
  const parts = partsOf(message, path);
  const role = textAt(message, 'role');
  const text = parts
    .flatMap(({ part, at }) => (textAt(part, 'type') === 'text' ? [requiredText(part, 'text', at)] : []))
    .join('\n');
  if (role === 'assistant') {
    const toolCalls = parts.flatMap(({ part, at }) => assistantPart(part, at));
    for (const { id, name } of toolCalls) names.set(id, name);
    return [{ role: 'assistant', text, toolCalls }];
  }
  if (role !== 'user') throw refused(`${path}.role`, 'must be user or assistant');
  const results = parts.flatMap(({ part, at }) => userPart(part, at, names));
  return text === '' && results.length > 0 ? results : [...results, { role: 'user', text }];
}

function partsOf(message: JsonObject, path: string): { part: JsonObject; at: string }[] {
  const content = member(message, 'content');
  if (typeof content === 'string') return [{ part: { type: 'text', text: content }, at: `${path}.content` }];
  if (!Array.isArray(content)) throw refused(`${path}.content`, 'must be a text or a list of blocks');
  return content.map((part, index) => {
    const at = `${path}.content[${index}]`;
    if (!isJsonObject(part)) throw refused(at, 'must be an object');
    return { part, at };
  });
}

function assistantPart(part: JsonObject, at: string): ToolCall[] {
  const type = textAt(part, 'type');
  if (type === 'tool_use') {
    const input = JSON.stringify(member(part, 'input') ?? {});
    return [{ id: requiredText(part, 'id', at), name: requiredText(part, 'name', at), arguments: input }];
  }
  if (['text', 'thinking', 'redacted_thinking'].includes(type)) return [];
  throw refused(at, `is of type ${JSON.stringify(type)}; an assistant message has text, thinking and tool_use`);
}

function userPart(part: JsonObject, at: string, names: Map<string, string>): ModelMessage[] {
  const type = textAt(part, 'type');
  if (type === 'text') return [];
  if (type !== 'tool_result')
    throw refused(at, `is of type ${JSON.stringify(type)}; a user message has text and tool_result`);
  const toolCallId = requiredText(part, 'tool_use_id', at);
  const name = names.get(toolCallId);
  if (name === undefined) throw refused(`${at}.tool_use_id`, 'names no call before it');
  const text = textContent(member(part, 'content'), `${at}.content`);
  return [{ role: 'tool', toolCallId, name, text, isError: member(part, 'is_error') === true }];
}

function isJsonText(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}
