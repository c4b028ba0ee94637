import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { inputLines } from './input-lines.ts';

const never = new AbortController().signal;

async function linesOf(chunks: Buffer[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of inputLines(Readable.from(chunks), never)) lines.push(line);
  return lines;
}

describe('the lines of standard input', () => {
  it('line feeds end lines, and line separators of Unicode do not', async () => {
    const chunks = ['{"a":"x\u2028y"}\r\n\nse', 'cond\nlast'].map((text) => Buffer.from(text));
    assert.deepEqual(await linesOf(chunks), ['{"a":"x\u2028y"}', '', 'second', 'last']);
  });

  it('a line beyond the limit is refused', async () => {
    const lines = inputLines(Readable.from([Buffer.from('ok\n'), Buffer.alloc(9)]), never, 8);
    assert.equal((await lines.next()).value, 'ok');
    await assert.rejects(lines.next(), (error) => isTemperError(error, 'TEMPER_USAGE'));
  });

  it('an interrupt ends a stream that has not ended', async () => {
    const interrupt = new AbortController();
    const stream = new PassThrough();
    stream.write('first\nsecond');
    const lines = inputLines(stream, interrupt.signal);
    assert.equal((await lines.next()).value, 'first');
    const next = lines.next();
    interrupt.abort();
    assert.deepEqual(await next, { value: undefined, done: true });
  });
});
