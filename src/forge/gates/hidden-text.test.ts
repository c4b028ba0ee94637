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

  it('ordinary text of any language passes, line feeds and tabs included', () => {
    const texts = ['Zählt Wörter.', '数える。', 'سطر واحد', 'One line.\nAnother,\ttabbed.', 'café ☕ – “quoted”'];
    for (const description of texts) assert.deepEqual(problems({ description }), [], description);
    assert.deepEqual(problems({ inputSchema: JSON.stringify({ description: 'a\nb\tc' }) }), []);
  });
});
