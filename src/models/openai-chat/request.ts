import type OpenAI from 'openai';
import { systemPrompt } from '../adapter/json-mode.ts';
import type { ModelMessage, ModelInput } from '../port.ts';
import { toolResultText } from '../adapter/tool-error-text.ts';

type ChatRequest = OpenAI.ChatCompletionCreateParamsStreaming;
type ChatMessage = OpenAI.ChatCompletionMessageParam;

/** `original`: OpenAI itself. `compatible`: servers that only know the older name of the output limit, `max_tokens`. */
export type ChatDialect = 'original' | 'compatible';

/** The request body. No other members are ever sent. */
export function chatRequest(request: ModelInput, model: string, dialect: ChatDialect): ChatRequest {
  const system = systemPrompt(request);
  const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  const body: ChatRequest = {
    model,
    messages: [...messages, ...request.messages.map(chatMessage)],
    stream: true,
    stream_options: { include_usage: true },
  };
  if (dialect === 'original') body.max_completion_tokens = request.maxOutputTokens;
  else body.max_tokens = request.maxOutputTokens;
  if (request.temperature !== undefined) body.temperature = request.temperature;
  if (request.responseFormat === 'json') body.response_format = { type: 'json_object' };
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      function: { name, description, parameters: inputSchema },
    }));
  }
  return body;
}

function chatMessage(message: ModelMessage): ChatMessage {
  if (message.role === 'user') return { role: 'user', content: message.text };
  if (message.role === 'tool') {
    const content = toolResultText(message.text, message.isError);
    return { role: 'tool', tool_call_id: message.toolCallId, content };
  }
  if (message.toolCalls.length === 0) return { role: 'assistant', content: message.text };
  return {
    role: 'assistant',
    content: message.text === '' ? null : message.text,
    tool_calls: message.toolCalls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}
