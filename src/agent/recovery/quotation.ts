import type { ModelMessage } from '../../models/port.ts';

/**
 * Whether the text stands in something that the model has read: a result of a tool, or a message. Blanks and the escapes of JSON do not
 * count, because results are JSON text.
 */
export function isQuotation(text: string, messages: readonly ModelMessage[]): boolean {
  const wanted = comparable(text);
  return messages.some((message) => message.role !== 'assistant' && comparable(message.text).includes(wanted));
}

/** Without blanks, and without the escapes that JSON writes for line breaks, tabs and quotation marks. */
function comparable(text: string): string {
  return text.replaceAll(/\\[nrt]|[\s\\]/g, '');
}
