import type { Message, Part } from '@a2a-js/sdk';
import { ContentTypeNotSupportedError } from '@a2a-js/sdk/errors';
import { TEXT_CHARACTERS } from '../gateway-api/schema-parts.ts';
import { invalidParameters } from './errors.ts';

/**
 * The text that the agent gets: text parts as they are, data parts as JSON. Files are refused: the agent has no place for them that a
 * caller may write. Throws the errors of the protocol.
 */
export function messageText({ parts }: Pick<Message, 'parts'>): string {
  if (parts.length === 0) throw invalidParameters('message.parts is empty; send at least one text or data part');
  const text = parts.map(textOf).join('\n\n');
  if (text.trim() === '') throw invalidParameters('message.parts has no text; write what the agent is to do');
  if (text.length > TEXT_CHARACTERS)
    throw invalidParameters(`message.parts has ${text.length} characters; ${TEXT_CHARACTERS} are allowed`);
  return text;
}

function textOf({ content }: Part, index: number): string {
  switch (content?.$case) {
    case 'text':
      return content.value;
    case 'data':
      return `Data (JSON): ${JSON.stringify(content.value ?? null)}`;
    case 'raw':
    case 'url':
      throw new ContentTypeNotSupportedError(
        `message.parts[${index}] is a file, which no agent takes; send its content as a text or data part`,
      );
    default:
      throw invalidParameters(`message.parts[${index}] has neither text nor data`);
  }
}
