import { type Json, parseUntrustedJson } from '../lib/json.ts';

const NEWLINE = 0x0a;

/**
 * The JSON values of a stream with one on each line, as they arrive: all that a chunk completes at once, so that a chunk is handled without
 * waiting. Throws RangeError for a line that is too long, SyntaxError for one that is no JSON, Error for one that is not whole when the
 * stream ends.
 */
export async function* jsonLines(
  stream: AsyncIterable<Uint8Array>,
  longestLine: number,
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
      values.push(...parsed(pending, longestLine));
      pending = [];
      size = 0;
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    size += rest.length;
    if (size > longestLine) throw new RangeError(`a line is longer than ${longestLine} bytes`);
    if (rest.length > 0) pending.push(rest);
    if (values.length > 0) yield values;
  }
  if (pending.length > 0) throw new Error('the stream ended in the middle of a line');
}

function parsed(parts: readonly Uint8Array[], longestLine: number): Json[] {
  const bytes = Buffer.concat(parts);
  if (bytes.length > longestLine) throw new RangeError(`a line is longer than ${longestLine} bytes`);
  const text = bytes.toString('utf8').trim();
  return text === '' ? [] : [parseUntrustedJson(text)];
}
