import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { canonicalJson, digestOf, isDigest, sha256 } from './canonical.ts';
import type { Json } from './json.ts';

const anyJson = fc.jsonValue({ maxDepth: 4 }).map((value) => value as Json);

/** The same value with the members of every object in another order. */
function reordered(value: Json): Json {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, child]) => [key, reordered(child)] as const);
  return Object.fromEntries(entries.reverse());
}

describe('canonical JSON', () => {
  it('canonicalJson writes the examples of RFC 8785', () => {
    const numbers = [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001];
    const text = '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/';
    assert.equal(
      canonicalJson({ numbers, string: text, literals: [null, true, false] }),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('canonicalJson sorts members by UTF-16 code units, not by code points', () => {
    const keys = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
    assert.equal(canonicalJson(keys), '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
  });

  it('canonicalJson writes minus zero as zero, and rejects values that JSON cannot represent', () => {
    assert.equal(canonicalJson(-0), '0');
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => canonicalJson({ value }), RangeError);
    assert.throws(() => canonicalJson('\ud800'), RangeError);
    assert.throws(() => canonicalJson({ '\udfff': 1 }), RangeError);
  });

  it('canonicalJson omits undefined members', () => {
    assert.equal(canonicalJson({ a: 1, b: undefined as unknown as Json }), '{"a":1}');
  });

  it('canonical JSON parses to the same value, is its own canonical form, and does not depend on member order', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const text = canonicalJson(value);
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
        assert.equal(canonicalJson(JSON.parse(text) as Json), text);
        assert.equal(canonicalJson(reordered(value)), text);
      }),
      { numRuns: 2_000 },
    );
  });

  it('two values have the same digest only when they are equal', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (one, other) => {
        const same = canonicalJson(one) === canonicalJson(other);
        assert.equal(digestOf(one) === digestOf(other), same);
      }),
      { numRuns: 2_000 },
    );
  });

  it('canonicalJson keeps members named like properties of Object.prototype', () => {
    const value = JSON.parse('{"__proto__":1,"constructor":2,"toString":3}') as Json;
    assert.equal(canonicalJson(value), '{"__proto__":1,"constructor":2,"toString":3}');
  });
});

describe('a digest', () => {
  it('a digest is the full SHA-256 of the text', () => {
    assert.equal(sha256(''), 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    assert.equal(digestOf({}), sha256('{}'));
  });

  it('isDigest accepts only the full digest in lower case', () => {
    const digest = digestOf(1);
    assert.ok(isDigest(digest));
    for (const other of [
      digest.slice(0, -1),
      `${digest}0`,
      digest.toUpperCase(),
      digest.slice(7),
      `${digest}\n`,
      1,
      null,
    ]) {
      assert.ok(!isDigest(other), String(other));
    }
  });
});
