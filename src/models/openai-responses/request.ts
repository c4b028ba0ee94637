import type OpenAI from 'openai';
import { systemPrompt } from '../adapter/json-mode.ts';
import type { ModelMessage, ModelInput } from '../port.ts';
import { toolResultText } from '../adapter/tool-error-text.ts';

type ResponsesRequest = OpenAI.Responses.ResponseCreateParamsStreaming;
type InputItem = OpenAI.Responses.ResponseInputItem;

/** The request body. No other members are ever sent. The provider stores nothing (`store: false`): the session has the conversation. */
export function responsesRequest(request: ModelInput, model: string): ResponsesRequest {
  const system = systemPrompt(request);
  const body: ResponsesRequest = {
    model,
    input: request.messages.flatMap(items),
    max_output_tokens: request.maxOutputTokens,
    store: false,
    stream: true,
  };
  if (system !== '') body.instructions = system;
  if (request.temperature !== undefined) body.temperature = request.temperature;
  if (request.responseFormat === 'json') body.text = { format: { type: 'json_object' } };
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      name,
      description,
      parameters: inputSchema,
      // Strict mode rejects schemas that other providers accept; the tool validates its arguments.
      strict: false,
    }));
  }
  return body;
}

function items(message: ModelMessage): InputItem[] {
  if (message.role === 'tool') {
    const output = toolResultText(message.text, message.isError);
    return [{ type: 'function_call_output', call_id: message.toolCallId, output }];
  }
  const texts: InputItem[] =
    message.text === '' ? [] : [{ type: 'message', role: message.role, content: message.text }];
  if (message.role === 'user') return texts;
  const calls = message.toolCalls.map(
    (call): InputItem => ({ type: 'function_call', call_id: call.id, name: call.name, arguments: call.arguments }),
  );
  return [...texts, ...calls];
}
