import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { displayWidth, padToWidth } from './display-width.ts';
import { table } from './table.ts';

describe('the display width of a text', () => {
  it('the display width counts terminal columns, not UTF-16 units', () => {
    const expected: readonly (readonly [string, number])[] = [
      ['', 0],
      ['analyst', 7],
      ['Übersicht', 9],
      ['U\u0308bersicht', 9],
      ['分析', 4],
      ['데이터', 6],
      ['ﾊﾝｶｸ', 4],
      ['🚀', 2],
      ['👩‍👩‍👧', 2],
      ['🇩🇪', 2],
      ['❤️', 2],
      ['→ ✓', 3],
      ['a\u{20000}', 3],
    ];
    for (const [text, width] of expected) assert.equal(displayWidth(text), width, JSON.stringify(text));
  });

  it('a padded text has the requested width, and a wider text stays as it is', () => {
    assert.equal(padToWidth('分析', 6), '分析  ');
    assert.equal(padToWidth('analyst', 3), 'analyst');
  });

  it('table columns start at the same terminal column below wide names', () => {
    const lines = table(
      ['NAME', 'AGE'],
      [
        ['分析担当', '1s'],
        ['a', '2s'],
      ],
    )
      .trimEnd()
      .split('\n');
    const starts = lines.map((line) => displayWidth(line.slice(0, line.search(/\S+$/u))));
    assert.deepEqual(starts, [10, 10, 10]);
  });
});
