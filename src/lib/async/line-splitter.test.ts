import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { LineSplitter } from './line-splitter.ts';

const tooLong = (): Error => new Error('too long');

/** All lines of the text, which arrives in chunks of these sizes; the last entry is the rest. */
function split(splitter: LineSplitter, text: string, sizes: readonly number[]): string[] {
  const bytes = Buffer.from(text);
  const lines: string[] = [];
  let start = 0;
  for (const size of [...sizes, bytes.length]) {
    lines.push(...splitter.push(bytes.subarray(start, start + size)));
    start += size;
  }
  return [...lines, splitter.rest()];
}

describe('LineSplitter', () => {
  it('the lines are those of the text, wherever the chunks are cut', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'ü', '😀', '\n', '\r', ' ') });
    fc.assert(
      fc.property(text, fc.array(fc.nat(5)), (whole, sizes) => {
        assert.deepEqual(split(new LineSplitter(1_000, tooLong), whole, sizes), whole.split('\n'));
      }),
    );
  });

  it('a line of exactly the limit is accepted, and a longer one throws before its end arrives', () => {
    assert.deepEqual(split(new LineSplitter(3, tooLong), 'abc\nabc', [2]), ['abc', 'abc']);
    assert.throws(() => split(new LineSplitter(3, tooLong), 'abc\nabcd', [2]), tooLong());
    assert.throws(() => split(new LineSplitter(3, tooLong), 'abcd\n', []), tooLong());
  });

  it('lines before one that is too long are yielded first', () => {
    const lines: string[] = [];
    const splitter = new LineSplitter(3, tooLong);
    assert.throws(() => {
      for (const line of splitter.push(Buffer.from('a\nb\ncccc'))) lines.push(line);
    }, tooLong());
    assert.deepEqual(lines, ['a', 'b']);
  });

  it('without an error for long lines each line is truncated, and the next one is whole', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4)), (sizes) => {
        assert.deepEqual(split(new LineSplitter(3), 'abcdefgh\nij\nklmnop', sizes), ['abc', 'ij', 'klm']);
      }),
    );
  });
});
