import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { aRequest, artifactOf } from '../forge.testing.ts';
import { checkHiddenText } from './hidden-text.ts';

function problems(changes: Partial<ToolArtifact>): string[] {
  return checkHiddenText({ ...artifactOf(aRequest()), ...changes }).map(({ message }) => message);
}

describe('hidden text', () => {
  it('invisible characters in the description and the schemas are refused', () => {
    for (const hidden of ['\u202e', '\u200b', '\u2066', '\ufeff', '\u001b', String.fromCodePoint(0xe0041)]) {
      const point = (hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
      assert.deepEqual(problems({ description: `Doubles ${hidden}a number.` }), [
        `description contains the invisible character U+${point}; remove it`,
      ]);
    }
    assert.equal(problems({ inputSchema: '{"description":"a\u202eb"}' }).length, 1);
    assert.equal(problems({ outputSchema: '{"description":"a\\u001b[2J"}' }).length, 1);
  });

  it('every character that is not drawn is refused, wherever it stands in a schema and however it is written', () => {
    const points = (
      '0 1b 7f 85 9b ad 34f 61c 115f 1160 17b4 180b 180e 200b 200c 200d 2028 2029 202e 2060 2064 206f 2800 3164 e000 fe00 ' +
      'fe0e fe0f feff ffa0 fff0 fff9 fffb fffc fffe ffff 16fe4 1bca0 1d159 1d173 e0001 e0041 e0100 e01ef f0000 10ffff'
    )
      .split(' ')
      .map((point) => Number.parseInt(point, 16));
    for (const point of points) {
      const hidden = `a${String.fromCodePoint(point)}b`;
      const units = Array.from({ length: hidden.length }, (_, index) => hidden.charCodeAt(index));
      const escaped = units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
      for (const schema of [JSON.stringify({ properties: { [hidden]: {} } }), `{"enum":[{"a":["${escaped}"]}]}`]) {
        assert.equal(problems({ inputSchema: schema }).length, 1, point.toString(16));
      }
      assert.equal(problems({ description: hidden }).length, 1, point.toString(16));
    }
  });

  it('joiners and presentation marks pass inside emoji only, and at most thirty-two of them', () => {
    const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}';
    for (const emoji of ['❤️', '👍🏽', '1️⃣', family, '🏳️‍🌈'])
      assert.deepEqual(problems({ description: `Likes ${emoji}.` }), []);
    assert.match(problems({ description: 'a\u200db' })[0] ?? '', /U\+200D/);
    assert.match(problems({ description: '❤️'.repeat(33) })[0] ?? '', /33 joiners and marks/);
    assert.match(problems({ description: '❤\ufe0f\ufe0f' })[0] ?? '', /U\+FE0F/);
  });

  it('blanks of several widths and stacked marks cannot carry a text', () => {
    for (const blanks of ['a\u2009\u200ab', 'a\u00a0\u202fb', 'a\u2009 \u200a b', 'a\u3000\u3000\u3000b']) {
      assert.match(problems({ description: blanks })[0] ?? '', /special widths/, JSON.stringify(blanks));
    }
    assert.match(problems({ description: `a${'\u0301'.repeat(7)}` })[0] ?? '', /marks on one letter/);
    const fine = [
      '10\u00a0kg',
      'Prix\u202f: 5',
      '\u3000\u3000数える。',
      'a  b    c',
      'tiếng Việt',
      'a\u0323\u0302',
      'क्षि',
    ];
    for (const description of fine) assert.deepEqual(problems({ description }), [], description);
  });

  it('ordinary text of any language passes, line feeds and tabs included', () => {
    const texts = ['Zählt Wörter.', '数える。', 'سطر واحد', 'One line.\nAnother,\ttabbed.', 'café ☕ – “quoted”'];
    for (const description of texts) assert.deepEqual(problems({ description }), [], description);
    assert.deepEqual(problems({ inputSchema: JSON.stringify({ description: 'a\nb\tc' }) }), []);
  });
});
