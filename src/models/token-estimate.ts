import type { ModelInput, ModelMessage } from './port.ts';

export const CHARACTERS_PER_TOKEN = 4;

/** Estimated tokens of a request: a quarter of its characters. */
export function estimateTokens(request: Pick<ModelInput, 'system' | 'messages' | 'tools'>): number {
  const characters = request.system.length + charactersOfTools(request.tools) + charactersOf(request.messages);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

export function charactersOfTools(tools: ModelInput['tools']): number {
  let sum = 0;
  for (const tool of tools) sum += tool.name.length + tool.description.length + JSON.stringify(tool.inputSchema).length;
  return sum;
}

export function charactersOf(messages: readonly ModelMessage[]): number {
  let sum = 0;
  for (const message of messages) {
    sum += message.text.length;
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) sum += call.name.length + call.arguments.length;
    }
  }
  return sum;
}
