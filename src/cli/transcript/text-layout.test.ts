import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { padToWidth } from '../display-width.ts';
import { styledWidth, truncateToWidth } from './styled-text.ts';
import { StatusLine } from './status-line.ts';
import { WordStream } from './word-stream.ts';
import { wrap } from './wrap.ts';

describe('the width of text on a terminal', () => {
  for (const [text, width] of [
    ['', 0],
    ['plain', 5],
    ['日本', 4],
    ['한글', 4],
    ['ｆｕｌｌ', 8],
    ['ｱ', 1],
    ['e\u0301', 1],
    ['👍', 2],
    ['👍🏽', 2],
    ['👩‍👩‍👧', 2],
    ['🇩🇪', 2],
    ['❤️', 2],
    ['→', 1],
    ['\u001b[31mred\u001b[39m', 3],
  ] as const) {
    it(`${JSON.stringify(text)} has ${width} columns`, () => {
      assert.equal(styledWidth(text), width);
    });
  }

  it('a cut text fits, also when a wide character would cross the limit', () => {
    assert.equal(truncateToWidth('abcdef', 6), 'abcdef');
    assert.equal(truncateToWidth('abcdefg', 6), 'abcde…');
    assert.equal(truncateToWidth('日本語日本語', 6), '日本…');
  });

  it('padding counts columns', () => {
    assert.equal(padToWidth('日本', 6), '日本  ');
  });
});

describe('wrapping', () => {
  it('wrapping breaks at spaces and indents each further line', () => {
    const text = 'aaaa bbbb cccc dddd eeee ffff';
    assert.equal(wrap(text, 20, 2), 'aaaa bbbb cccc dddd\n  eeee ffff');
  });

  it('wrapping keeps a line that fits exactly, leading spaces and spaces between words', () => {
    assert.equal(wrap('  a  b', 6), '  a  b');
  });

  it('wrapping breaks a word that is longer than a line', () => {
    assert.equal(wrap('x'.repeat(25), 20), `${'x'.repeat(20)}\n${'x'.repeat(5)}`);
  });

  it('wrapping breaks between wide characters without splitting one', () => {
    assert.equal(wrap('日'.repeat(11), 21), `${'日'.repeat(10)}\n日`);
  });

  it('wrapping changes nothing without a width', () => {
    assert.equal(wrap('a '.repeat(200), undefined, 4), 'a '.repeat(200));
  });

  it('wrapping leaves columns for text when the indentation is wider than the terminal', () => {
    const lines = wrap('word '.repeat(10).trim(), 20, 60).split('\n');
    assert.ok(
      lines.every((line) => line.length <= 20),
      lines.join('\n'),
    );
  });
});

describe('a stream of words', () => {
  it('a stream of words releases a word when its end has arrived', () => {
    const words = new WordStream();
    assert.equal(words.push('one tw'), 'one ');
    assert.equal(words.push('o'), '');
    assert.equal(words.push('\nthree'), 'two\n');
    assert.equal(words.flush(), 'three');
    assert.equal(words.flush(), '');
  });

  it('a stream of words releases text without spaces that has wide characters', () => {
    assert.equal(new WordStream().push('日本'), '日本');
  });

  it('a stream of words releases an endless word in parts', () => {
    assert.equal(new WordStream().push('x'.repeat(10_000)).length, 10_000);
  });
});

describe('the status line', () => {
  it('the status line shows what runs and for how long, and disappears before other text', () => {
    const out: string[] = [];
    let now = 0;
    let tick = (): void => undefined;
    const line = new StatusLine({
      out: (text) => out.push(text),
      columns: () => 80,
      clock: { monotonic: () => now },
      every: (_milliseconds, run) => {
        tick = run;
        return () => (tick = () => undefined);
      },
    });
    line.show('analyst thinks');
    assert.deepEqual(out, [], 'nothing is drawn before the first tick');
    now = 3_200;
    tick();
    assert.match(out[0] ?? '', /analyst thinks 3 s$/);
    line.erase();
    assert.equal(out[1], '\r\u001b[2K');
    line.hide();
    tick();
    assert.equal(out.length, 2);
  });
});
