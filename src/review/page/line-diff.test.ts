import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { diffLines } from './line-diff.ts';

function shown(before: string, after: string): string[] {
  return diffLines(before, after).map(({ gutter, spans }) => `${gutter}${spans.map(({ text }) => text).join('')}`);
}

describe('the difference of two texts', () => {
  it('the difference shows changed lines with three lines around them', () => {
    const before = 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj';
    assert.deepEqual(shown(before, before.replace('f', 'F')), [
      '⋯2 equal lines',
      ' c',
      ' d',
      ' e',
      '-f',
      '+F',
      ' g',
      ' h',
      ' i',
      '⋯1 equal line',
    ]);
    assert.deepEqual(shown('a', 'a'), []);
  });

  it('the removed and kept lines are the old text, the added and kept lines the new one', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
      .map((lines) => lines.join('\n'));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = shown(before, after).filter((line) => !line.startsWith('⋯'));
        const without = (mark: string): string =>
          lines
            .filter((line) => !line.startsWith(mark))
            .map((line) => line.slice(1))
            .join('\n');
        if (before === after) return;
        assert.equal(without('+'), before);
        assert.equal(without('-'), after);
      }),
      { seed: 1 },
    );
  });

  it('many blank lines become one line, so that no change is far below', () => {
    assert.deepEqual(shown('a', `a\n${'\n'.repeat(900)}steal()`), [' a', '+900 blank lines', '+steal()']);
  });

  it('texts too long to compare are shown one after the other', () => {
    const lines = (mark: string): string => Array.from({ length: 3_000 }, (_, index) => `${mark}${index}`).join('\n');
    const all = shown(lines('a'), lines('b'));
    assert.deepEqual([all.length, all[0], all[3_000]], [6_000, '-a0', '+b0']);
  });
});
