import type Anthropic from '@anthropic-ai/sdk';
import { isJsonObject, parseUntrustedJson, type JsonObject } from '../../lib/json.ts';
import { systemPrompt } from '../json-answer.ts';
import type { ModelMessage, ModelRequest } from '../port.ts';

/** The SDK no longer types the temperature, which its older models still take. */
type MessagesRequest = Anthropic.MessageCreateParamsStreaming & { temperature?: number };
type Block = Anthropic.ContentBlockParam;

/** Exactly these members are ever sent. */
export function messagesRequest(request: ModelRequest, model: string): MessagesRequest {
  const system = systemPrompt(request);
  const body: MessagesRequest = {
    model,
    max_tokens: request.maxOutputTokens,
    messages: mergedByRole(request.messages),
    stream: true,
  };
  if (system !== '') body.system = system;
  if (request.temperature !== undefined) body.temperature = request.temperature;
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: { ...inputSchema, type: 'object' },
    }));
  }
  return body;
}

/** Roles must take turns, and tool results are part of a user's message, ahead of its text. */
function mergedByRole(messages: readonly ModelMessage[]): Anthropic.MessageParam[] {
  const merged: { role: 'user' | 'assistant'; content: Block[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = blocksOf(message);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  return merged;
}

function blocksOf(message: ModelMessage): Block[] {
  // An empty text block is refused.
  const text: Block[] = message.role !== 'tool' && message.text !== '' ? [{ type: 'text', text: message.text }] : [];
  if (message.role === 'user') return text;
  if (message.role === 'tool') {
    const { toolCallId, isError, text: content } = message;
    return [{ type: 'tool_result', tool_use_id: toolCallId, content, is_error: isError }];
  }
  const calls = message.toolCalls.map(
    ({ id, name, arguments: given }): Block => ({ type: 'tool_use', id, name, input: inputOf(given) }),
  );
  return [...text, ...calls];
}

/** This format carries an object; arguments that are none are kept where the model can see what it wrote. */
function inputOf(source: string): JsonObject {
  try {
    const value = parseUntrustedJson(source);
    return isJsonObject(value) ? value : { malformed: source };
  } catch (error) {
    if (error instanceof SyntaxError) return { malformed: source };
    throw error;
  }
}
