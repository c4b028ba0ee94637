import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isJsonObject, type Json, jsonDepth, member, parseUntrustedJson, textAt } from './json.ts';

describe('untrusted JSON', () => {
  it('parseUntrustedJson drops members that could change the prototype, also when their names are escaped', () => {
    for (const text of [
      '{"a":1,"__proto__":{"polluted":1}}',
      '{"a":1,"\\u005f_proto__":{"polluted":1}}',
      '{"a":1,"constructor":{"prototype":{"polluted":1}}}',
      '{"a":1,"prototype":[]}',
    ]) {
      const value = parseUntrustedJson(text);
      assert.deepEqual(value, { a: 1 }, text);
      assert.equal((value as Record<string, unknown>)['polluted'], undefined);
    }
    assert.deepEqual(parseUntrustedJson('[[{"x":{"__proto__":1,"y":2}}]]'), [[{ x: { y: 2 } }]]);
  });

  it('parseUntrustedJson keeps the unsafe keys as string values', () => {
    assert.deepEqual(parseUntrustedJson('["__proto__","constructor"]'), ['__proto__', 'constructor']);
  });

  it('parseUntrustedJson refuses a number that JSON.parse reads as Infinity, however it is written', () => {
    const ones = '1'.repeat(400);
    for (const text of ['1e999', '[-1E+309]', '{"a":[{"b":1e0000400}]}', ones, `[${'9'.repeat(250)}e99]`, '2e308']) {
      assert.throws(() => parseUntrustedJson(text), SyntaxError, text);
    }
    for (const text of ['1e308', '1e-999', '"1e999"', `"${ones}"`, '{"1e999":1.5e3}']) {
      assert.deepEqual(parseUntrustedJson(text), JSON.parse(text), text);
    }
  });

  it('parseUntrustedJson otherwise returns the same value as JSON.parse', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        if (/__proto__|constructor|prototype/.test(text)) return;
        assert.deepEqual(parseUntrustedJson(text), JSON.parse(text));
      }),
    );
    assert.throws(() => parseUntrustedJson('{'), SyntaxError);
  });
});

describe('reading JSON', () => {
  it('member reads own properties only', () => {
    assert.equal(member({ a: null }, 'a'), null);
    for (const name of ['toString', '__proto__', 'constructor']) assert.equal(member({}, name), undefined);
    for (const value of [null, 1, 'a', [1]] as Json[]) assert.equal(member(value, 'length'), undefined);
    assert.equal(member(undefined, 'a'), undefined);
  });

  it('textAt follows member names to a string, or returns the fallback', () => {
    assert.equal(textAt({ a: { b: 'c' } }, ['a', 'b']), 'c');
    assert.equal(textAt({ a: { b: 1 } }, ['a', 'b'], 'none'), 'none');
    assert.equal(textAt(undefined, ['a']), '');
  });

  it('isJsonObject rejects arrays and null', () => {
    assert.ok(isJsonObject({}));
    for (const value of [null, [], 'a', 1, undefined]) assert.ok(!isJsonObject(value));
  });

  it('jsonDepth counts depth without recursion, up to a limit', () => {
    assert.equal(jsonDepth(1), 0);
    assert.equal(jsonDepth([]), 1);
    assert.equal(jsonDepth({ a: [{ b: 1 }] }), 3);
    let deep: Json = 1;
    for (let level = 0; level < 50_000; level += 1) deep = [deep];
    assert.equal(jsonDepth(deep, 200), 200);
  });
});
