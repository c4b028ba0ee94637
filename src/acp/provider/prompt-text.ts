import type { ModelMessage } from '../../models/port.ts';

/** Of the history in a prompt; the oldest items are left out. */
const MAX_HISTORY_CHARACTERS = 200_000;
/** Of one item of the history. */
const MAX_ITEM_CHARACTERS = 20_000;

export interface PromptParts {
  /** The system prompt; absent when the agent has it already. */
  instructions?: string;
  /** What the agent knows in all sessions; absent when the agent has it already. */
  context?: string;
  /** The items of the session before the message; absent when the agent has them already. */
  history?: readonly ModelMessage[];
  /** What an interrupted attempt at the message did. */
  earlier?: readonly ModelMessage[];
  message: string;
}

/** The text of one prompt. The protocol has no system prompt and no history, so a new session of the agent gets both as text. */
export function promptText({ instructions, context = '', history = [], earlier = [], message }: PromptParts): string {
  const parts = [
    instructions === undefined ? '' : `Your instructions:\n\n${instructions}`,
    context,
    history.length === 0 ? '' : `The conversation so far:\n\n${historyText(history)}`,
    instructions === undefined && history.length === 0 && earlier.length === 0
      ? ''
      : 'The message that you answer now:',
    message,
    earlier.length === 0
      ? ''
      : `An earlier attempt at this message was interrupted. It did this:\n\n${historyText(earlier)}`,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function historyText(items: readonly ModelMessage[]): string {
  const lines: string[] = [];
  let characters = 0;
  for (const item of items.toReversed()) {
    const line = itemText(item);
    characters += line.length;
    if (characters > MAX_HISTORY_CHARACTERS) {
      lines.unshift('[Earlier items are left out.]');
      break;
    }
    if (line !== '') lines.unshift(line);
  }
  return lines.join('\n\n');
}

function itemText(item: ModelMessage): string {
  switch (item.role) {
    case 'user':
      return `User: ${cut(item.text)}`;
    case 'assistant': {
      const calls = item.toolCalls.map((call) => `You called ${call.name} with ${cut(call.arguments)}`);
      return [...(item.text === '' ? [] : [`You: ${cut(item.text)}`]), ...calls].join('\n');
    }
    case 'tool':
      return `${item.isError ? 'Error' : 'Result'} of ${item.name}: ${cut(item.text)}`;
  }
}

function cut(text: string): string {
  return text.length > MAX_ITEM_CHARACTERS ? `${text.slice(0, MAX_ITEM_CHARACTERS)}…` : text;
}
