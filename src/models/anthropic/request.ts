import type Anthropic from '@anthropic-ai/sdk';
import { isJsonObject, parseUntrustedJson, type JsonObject } from '../../lib/json.ts';
import { systemPrompt } from '../adapter/json-mode.ts';
import type { ModelMessage, ModelInput } from '../port.ts';

/** The SDK's type has no temperature any more; older models still accept it. */
type MessagesRequest = Anthropic.MessageCreateParamsStreaming & { temperature?: number };
type ContentBlock = Anthropic.ContentBlockParam;

/** Ends a prefix of the request that the provider keeps for five minutes. */
const CACHE = { type: 'ephemeral' } as const;
/** The last messages of the user that end such a prefix. Two: the provider compares at most 20 blocks back, and one turn may have more. */
const CACHED_MESSAGES = 2;

/**
 * The request body. No other members are ever sent. A request with tools is one of a loop, so its prefix comes again with the next turn: the
 * provider is asked to keep tools and system prompt, and the messages so far. A request without tools comes once.
 */
export function messagesRequest(request: ModelInput, model: string): MessagesRequest {
  const system = systemPrompt(request);
  const body: MessagesRequest = {
    model,
    max_tokens: request.maxOutputTokens,
    messages: mergedByRole(request.messages),
    stream: true,
  };
  const isOfLoop = request.tools.length > 0;
  if (system !== '') body.system = isOfLoop ? [{ type: 'text', text: system, cache_control: CACHE }] : system;
  if (request.temperature !== undefined) body.temperature = request.temperature;
  if (isOfLoop) {
    body.tools = request.tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: { ...inputSchema, type: 'object' },
    }));
    cacheMessages(body.messages);
  }
  return body;
}

function cacheMessages(messages: readonly Anthropic.MessageParam[]): void {
  const ofUser = messages.filter(({ role }) => role === 'user').slice(-CACHED_MESSAGES);
  for (const { content } of ofUser) {
    const last = typeof content === 'string' ? undefined : content.at(-1);
    if (last?.type === 'text' || last?.type === 'tool_result') last.cache_control = CACHE;
  }
}

/** Merges messages so that roles alternate, as the API requires; tool results are part of a user message, before its text. */
function mergedByRole(messages: readonly ModelMessage[]): Anthropic.MessageParam[] {
  const merged: { role: 'user' | 'assistant'; content: ContentBlock[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = blocksOf(message);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  return merged;
}

function blocksOf(message: ModelMessage): ContentBlock[] {
  // The API rejects an empty text block.
  const text: ContentBlock[] =
    message.role !== 'tool' && message.text !== '' ? [{ type: 'text', text: message.text }] : [];
  if (message.role === 'user') return text;
  if (message.role === 'tool') {
    const { toolCallId, isError, text: content } = message;
    return [{ type: 'tool_result', tool_use_id: toolCallId, content, is_error: isError }];
  }
  const calls = message.toolCalls.map(
    ({ id, name, arguments: given }): ContentBlock => ({ type: 'tool_use', id, name, input: inputOf(given) }),
  );
  return [...text, ...calls];
}

/** This format requires an object; arguments that are not an object are sent in a member, so that the model sees its own text. */
function inputOf(source: string): JsonObject {
  try {
    const value = parseUntrustedJson(source);
    return isJsonObject(value) ? value : { malformed: source };
  } catch (error) {
    if (error instanceof SyntaxError) return { malformed: source };
    throw error;
  }
}
