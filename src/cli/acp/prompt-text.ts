import { type ContentBlock, RequestError } from '@agentclientprotocol/sdk';
import { messageText } from '../input/message-text.ts';

/** The message of a prompt: its texts, and links to resources as the names that an agent can open. */
export function promptText(blocks: readonly ContentBlock[]): string {
  const text = blocks.map((block, index) => blockText(block, index)).join('\n');
  if (text.trim() === '') throw RequestError.invalidParams(undefined, 'the prompt has no text');
  return messageText(text, 'the prompt');
}

function blockText(block: ContentBlock, index: number): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `[${block.name}](${block.uri})`;
    default:
      throw RequestError.invalidParams(
        undefined,
        `prompt[${index}] is of type ${block.type}; send text or resource_link`,
      );
  }
}
