import { TemperError } from '../lib/errors.ts';

export interface LineLimits {
  lineBytes: number;
  totalBytes: number;
}

/** The non-empty lines of a byte stream. Throws TEMPER_GATEWAY_BAD_RESPONSE beyond the limits. */
export async function* readLines(chunks: AsyncIterable<Buffer>, limits: LineLimits): AsyncGenerator<string> {
  let total = 0;
  let pending: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    total += chunk.length;
    if (total > limits.totalBytes) throw tooLarge(`more than ${limits.totalBytes} bytes`);
    let start = 0;
    for (let end = chunk.indexOf(10, start); end !== -1; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...pending, chunk.subarray(start, end)]);
      pending = [];
      length = 0;
      start = end + 1;
      if (line.length > limits.lineBytes) throw tooLarge(`a line of more than ${limits.lineBytes} bytes`);
      if (line.length > 0) yield line.toString('utf8');
    }
    pending.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > limits.lineBytes) throw tooLarge(`a line of more than ${limits.lineBytes} bytes`);
  }
  if (length > 0) yield Buffer.concat(pending).toString('utf8');
}

export function tooLarge(what: string): TemperError {
  return new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', `the gateway sent ${what}`);
}
