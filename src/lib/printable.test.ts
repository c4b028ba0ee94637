import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isUnprintable, printable, printableDocument } from './printable.ts';

/** The joiner between two emoji is the only invisible character that stays. */
const EMOJI_JOINER = /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})/gu;

describe('printable text', () => {
  it('printable escapes characters that control a terminal', () => {
    assert.equal(printable('a\nb\tc\rd'), 'a\\nb\\tc\\rd');
    assert.equal(printable('\u001b[2J'), '\\u{1b}[2J');
    assert.equal(printable('abc\u202egnp.exe'), 'abc\\u{202e}gnp.exe');
    assert.equal(printable('in\u200bvisible\ufeff'), 'in\\u{200b}visible\\u{feff}');
    assert.equal(printable(String.fromCodePoint(0xe0041)), '\\u{e0041}');
    assert.equal(printable('lone \ud800'), 'lone \\u{d800}');
  });

  it('printable does not change ordinary text of any language', () => {
    for (const text of ['Zürich', '東京', 'שלום', '👩‍🚀', '👩🏽‍🚀', '❤️‍🔥', '−$18,204.50'])
      assert.equal(printable(text), text);
  });

  it('printable escapes a joiner that does not join two emoji', () => {
    assert.equal(printable('a\u200db'), 'a\\u{200d}b');
    assert.equal(printable('👩\u200db'), '👩\\u{200d}b');
    assert.equal(printable('👩\u200d\u200d🚀'), '👩\\u{200d}\\u{200d}🚀');
  });

  it('a limit inside a character removes the whole character', () => {
    assert.equal(printable('ab😀c', 3), 'ab…');
  });

  it('a printable document has the same value and no unprintable character but its line breaks', () => {
    const value = { 'key\u202e': 'esc \u001b del \u007f c1 \u009b tag \u{e0041} line\n' };
    const text = printableDocument(JSON.stringify(value, null, 2));
    assert.deepEqual(JSON.parse(text), value);
    assert.doesNotMatch(text, /[^\n\x20-\x7e]/);
  });

  it('the result of printable is bounded and contains no unprintable character, for any input', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const shown = printable(text, 50);
        assert.ok(shown.length <= 50 * 10 + 1);
        assert.ok(
          !Array.from(shown.replaceAll(EMOJI_JOINER, '')).some((character) =>
            isUnprintable(character.codePointAt(0) ?? 0),
          ),
        );
      }),
    );
  });
});
