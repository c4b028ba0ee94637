import { addAbortSignal, type Readable } from 'node:stream';
import { LineSplitter } from '../../lib/async/line-splitter.ts';
import { TemperError } from '../../lib/errors.ts';

/** Generous: a program that speaks a protocol sends each message as one line. */
const MAX_LINE_BYTES = 8 * 1_024 * 1_024;

/** The lines of a stream, until its end or until the signal aborts. Only line feeds end a line, so JSON may have any other character. Throws TEMPER_USAGE for a line beyond the limit. */
export async function* inputLines(
  stream: Readable,
  signal: AbortSignal,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<string> {
  const lines = new LineSplitter(maxBytes, () => tooLong(maxBytes));
  try {
    for await (const chunk of addAbortSignal(signal, stream)) {
      for (const line of lines.push(chunk as Uint8Array)) yield withoutReturn(line);
    }
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  const rest = lines.rest();
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

function tooLong(maxBytes: number): TemperError {
  return new TemperError(
    'TEMPER_USAGE',
    `a line of standard input is longer than ${maxBytes} bytes; send shorter lines`,
  );
}
