import { LineSplitter } from '../lib/async/line-splitter.ts';
import { TemperError } from '../lib/errors.ts';

export interface LineLimits {
  lineBytes: number;
  totalBytes: number;
}

/** The non-empty lines of a byte stream. Throws TEMPER_GATEWAY_BAD_RESPONSE beyond the limits. */
export async function* readLines(chunks: AsyncIterable<Buffer>, limits: LineLimits): AsyncGenerator<string> {
  const { lineBytes, totalBytes } = limits;
  const splitter = new LineSplitter(lineBytes, () => tooLarge(`a line of more than ${lineBytes} bytes`));
  let total = 0;
  for await (const chunk of chunks) {
    total += chunk.length;
    if (total > totalBytes) throw tooLarge(`more than ${totalBytes} bytes`);
    for (const line of splitter.push(chunk)) if (line !== '') yield line;
  }
  const rest = splitter.rest();
  if (rest !== '') yield rest;
}

export function tooLarge(what: string): TemperError {
  return new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', `the gateway sent ${what}`);
}
