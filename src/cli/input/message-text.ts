import { TemperError } from '../../lib/errors.ts';

/** Longer texts belong into a file, which the agent reads in parts. */
const MAX_MESSAGE_BYTES = 1_048_576;

/** Checks the messages of the command line before a run starts. Throws TEMPER_USAGE. */
export function assertMessages(messages: readonly string[] = []): void {
  if (messages.filter((text) => text === '-').length > 1)
    throw new TemperError('TEMPER_USAGE', '-m - is given twice, and standard input can be read once; give it once');
  for (const text of messages) if (text !== '-') messageText(text, '--message');
}

/** The text of a message without its final line breaks. `source` names it in errors. Throws TEMPER_USAGE for a text that no model can receive. */
export function messageText(input: string, source: string): string {
  const text = input.replace(/[\r\n]+$/, '');
  const fail = (problem: string): TemperError => new TemperError('TEMPER_USAGE', `${source} ${problem}`);
  if (text.trim() === '') throw fail('is empty; write a message for the agent');
  if (text.includes('\0')) throw fail('has a NUL character, so it is not text; send text');
  if (Buffer.byteLength(text) <= MAX_MESSAGE_BYTES) return text;
  throw fail(
    `is longer than ${MAX_MESSAGE_BYTES} bytes; store the text as a file in --workspace, and name the file in the message`,
  );
}
