import type { ModelInput, ModelMessage } from './port.ts';

/** For the context window only. Charges use `charge/request-size.ts`, whose estimate is not below the real count. */
export const CHARACTERS_PER_TOKEN = 4;

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
