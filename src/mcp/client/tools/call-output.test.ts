import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../lib/errors.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { outputOf } from './call-output.ts';

const said = (text: string): JsonObject => ({ type: 'text', text });

/** The message of the failure that a result with `isError` becomes. */
function failureOf(result: JsonObject): string {
  try {
    outputOf('notes_read', { ...result, isError: true });
  } catch (error) {
    assert.ok(isTemperError(error, 'TEMPER_TOOL_FAILED'), String(error));
    return error.message;
  }
  return assert.fail('the result is a failure');
}

describe('the result of a tool of an MCP server', () => {
  it('the structured content is the output, and the text when there is none', () => {
    assert.deepEqual(outputOf('notes_read', { content: [said('{"n":2}')], structuredContent: { n: 1 } }), { n: 1 });
    assert.equal(outputOf('notes_read', { content: [said('a'), said('b')] }), 'a\nb');
    assert.equal(outputOf('notes_read', {}), '');
  });

  it('a failure has the text, and the structured content that the text does not repeat', () => {
    const structuredContent = { code: 'E_LOCKED', retryAfter: 3 };
    const json = '{"code":"E_LOCKED","retryAfter":3}';
    assert.equal(failureOf({ content: [said('no such note')] }), '"notes_read" failed: no such note');
    for (const content of [undefined, [], [said('')], [said(' \n')]]) {
      const result: JsonObject = content === undefined ? {} : { content };
      assert.equal(failureOf({ ...result, structuredContent }), `"notes_read" failed: ${json}`);
      assert.equal(failureOf(result), '"notes_read" failed: its server gave no reason');
    }
    assert.equal(failureOf({ content: [said('locked')], structuredContent }), `"notes_read" failed: locked ${json}`);
    const repeated = '{ "retryAfter": 3, "code": "E_LOCKED" }';
    assert.equal(failureOf({ content: [said(repeated)], structuredContent }), `"notes_read" failed: ${repeated}`);
    for (const structured of ['text', [1], null] satisfies Json[])
      assert.equal(
        failureOf({ content: [said('locked')], structuredContent: structured }),
        '"notes_read" failed: locked',
      );
  });

  it('a failure is one bounded line without control characters, wherever the server writes them', () => {
    const message = failureOf({ content: [said('a\n\u001b[2J')], structuredContent: { 'k\u202e': 'v\u200b\u001b' } });
    assert.equal(message, '"notes_read" failed: a\\n\\u{1b}[2J {"k\\u{202e}":"v\\u{200b}\\u001b"}');
    const [text, structured] = ['t', 's'].map((letter) => letter.repeat(1_500));
    const long = failureOf({ content: [said(text ?? '')], structuredContent: { structured: structured ?? '' } });
    assert.equal(long.length, '"notes_read" failed: '.length + 2_000 + '…'.length);
    assert.match(long, /t \{"structured":"s+…$/);
  });
});
