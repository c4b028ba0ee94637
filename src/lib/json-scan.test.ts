import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isJsonObject, type Json, jsonDepth, jsonExcess, type JsonLimits, JsonScanner } from './json.ts';

/** Values as a reader counts them: each container, each item and each member. */
function countValues(value: Json): number {
  const inner = Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : [];
  return 1 + inner.reduce<number>((sum, item) => sum + countValues(item), 0);
}

function fits(text: string, limits: JsonLimits): boolean {
  return jsonExcess(text, limits) === undefined;
}

describe('counting JSON before it is parsed', () => {
  it('the count is at least that of the parsed value, and at most twice that', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value = JSON.parse(text) as Json;
        const values = countValues(value);
        assert.ok(fits(text, { values: 2 * values, depth: 1_000 }), text);
        if (values > 1) assert.ok(!fits(text, { values: Math.ceil(values / 2) - 1, depth: 1_000 }), text);
      }),
    );
  });

  it('the depth is that of the parsed value', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const depth = jsonDepth(JSON.parse(text) as Json);
        assert.ok(fits(text, { values: 100_000, depth }), text);
        if (depth > 0) assert.equal(jsonExcess(text, { values: 100_000, depth: depth - 1 }), 'depth', text);
      }),
    );
  });

  it('strings count as one value, whatever they hold and wherever the text is cut', () => {
    const text = JSON.stringify({ 'a"[,{': '\\"]},[[[', b: ['\\\\', '"', '\u2028,', 'ä[😀{'] });
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const scanner = new JsonScanner({ values: 8, depth: 2 });
      assert.equal(scanner.scan(bytes.subarray(0, cut)), undefined);
      assert.equal(scanner.scan(bytes.subarray(cut)), undefined);
    }
    assert.equal(jsonExcess(text, { values: 8, depth: 1 }), 'depth');
    assert.equal(jsonExcess(text, { values: 5, depth: 2 }), 'values');
  });

  it('a text of many values is refused, however it writes them', () => {
    const limits = { values: 1_000, depth: 10 };
    for (const item of ['[]', '{}', '1', '""', '{"a":1}', 'null', ' [ ] ']) {
      assert.equal(jsonExcess(`[${Array(1_001).fill(item).join(',')}]`, limits), 'values', item);
      assert.equal(jsonExcess(`[${Array(400).fill(item).join(',')}]`, limits), undefined, item);
    }
  });

  it('a text that is no JSON is counted without an error', () => {
    for (const text of ['', ']]]]', '"', '"\\', '}{', '[[', '"a\\"', 'x'.repeat(100_000)]) {
      assert.equal(jsonExcess(text, { values: 10, depth: 5 }), undefined, text.slice(0, 10));
    }
  });
});
