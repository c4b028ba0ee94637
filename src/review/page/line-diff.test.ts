import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { diffLines } from './line-diff.ts';
import { compareLines } from '../../lib/text/shortest-edit.ts';

function shown(before: string, after: string): string[] {
  return diffLines(before, after).map(({ gutter, spans }) => `${gutter}${spans.map(({ text }) => text).join('')}`);
}

function commonLength([first, ...before]: string[], after: readonly string[]): number {
  if (first === undefined) return 0;
  const at = after.indexOf(first);
  const without = commonLength(before, after);
  return at === -1 ? without : Math.max(without, 1 + commonLength(before, after.slice(at + 1)));
}

describe('the difference of two texts', () => {
  it('the difference shows changed lines with three lines around them', () => {
    const before = 'a\nb\nc\nd\ne\nf\ng\nh\ni\nj';
    assert.deepEqual(shown(before, before.replace('f', 'F')), [
      '⋯2 equal lines @@ -3,7 +3,7 @@',
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
    assert.deepEqual(shown('a', `a\n${'\n'.repeat(900)}steal()`), [
      '⋯@@ -1,1 +1,902 @@',
      ' a',
      '+900 blank lines',
      '+steal()',
    ]);
  });

  it('a few changes in ten thousand lines are a few lines', () => {
    const before = Array.from({ length: 10_000 }, (_, index) => `line ${index % 50}`);
    const after = before.toSpliced(20, 1, 'changed').toSpliced(5_000, 0, 'added').toSpliced(9_000, 3);
    const all = shown(before.join('\n'), after.join('\n'));
    assert.ok(all.length < 40, `${all.length} lines`);
    assert.equal(all.filter((line) => line.startsWith('+')).length, 2);
    assert.equal(all.filter((line) => line.startsWith('-')).length, 4);
  });

  it('the difference has as few changed lines as a longest common subsequence allows', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 8 });
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const kept = compareLines(before, after).filter(({ mark }) => mark === ' ').length;
        assert.equal(kept, commonLength(before, after));
      }),
      { seed: 1 },
    );
  });

  it('texts too long to compare are shown one after the other', () => {
    const lines = (mark: string): string => Array.from({ length: 3_000 }, (_, index) => `${mark}${index}`).join('\n');
    const all = shown(lines('a'), lines('b'));
    assert.deepEqual([all.length, all[0], all[1], all[3_001]], [6_001, '⋯@@ -1,3000 +1,3000 @@', '-a0', '+b0']);
  });
});
