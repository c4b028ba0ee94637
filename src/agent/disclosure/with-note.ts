import type { ModelMessage } from '../../models/port.ts';

/**
 * The messages as the model gets them: the one with the text of the current message, or the last one of a user where a summary has taken its
 * place, ends with the note. The messages before it stay as they are, for the prompt cache of the provider. Pure.
 */
export function withNote(
  note: string | undefined,
  message: string,
  messages: readonly ModelMessage[],
): readonly ModelMessage[] {
  if (note === undefined) return messages;
  const exact = messages.findLastIndex((item) => item.role === 'user' && item.text.includes(message));
  const position = exact === -1 ? messages.findLastIndex(({ role }) => role === 'user') : exact;
  const noted = messages[position];
  if (noted?.role !== 'user') return messages;
  return messages.with(position, { ...noted, text: `${noted.text}\n\n${note}` });
}
