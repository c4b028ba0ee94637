import { LineSplitter } from '../../lib/async/line-splitter.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';

/**
 * Parses a stream of newline-delimited JSON. Yields all values that a chunk completes as one batch, so that a chunk is processed without
 * awaiting in between. Throws RangeError for a line that is too long, SyntaxError for a line that is not valid JSON, and Error when the stream
 * ends in the middle of a line.
 */
export async function* jsonLines(
  stream: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
  onBytes: () => void = () => {},
): AsyncGenerator<readonly Json[]> {
  const splitter = new LineSplitter(maxLineBytes, () => new RangeError(`a line is longer than ${maxLineBytes} bytes`));
  for await (const chunk of stream) {
    onBytes();
    const values: Json[] = [];
    for (const line of splitter.push(chunk)) if (line.trim() !== '') values.push(parseUntrustedJson(line));
    if (values.length > 0) yield values;
  }
  if (splitter.rest() !== '') throw new Error('the stream ended in the middle of a line');
}
