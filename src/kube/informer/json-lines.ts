import { type Json, parseUntrustedJson } from '../../lib/json.ts';

const NEWLINE = 0x0a;

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
  let pending: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    onBytes();
    const values: Json[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      values.push(...parseLine(pending, maxLineBytes));
      pending = [];
      size = 0;
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    size += rest.length;
    if (size > maxLineBytes) throw new RangeError(`a line is longer than ${maxLineBytes} bytes`);
    if (rest.length > 0) pending.push(rest);
    if (values.length > 0) yield values;
  }
  if (pending.length > 0) throw new Error('the stream ended in the middle of a line');
}

/** Empty for a blank line. */
function parseLine(chunks: readonly Uint8Array[], maxLineBytes: number): Json[] {
  const bytes = Buffer.concat(chunks);
  if (bytes.length > maxLineBytes) throw new RangeError(`a line is longer than ${maxLineBytes} bytes`);
  const text = bytes.toString('utf8').trim();
  return text === '' ? [] : [parseUntrustedJson(text)];
}
