import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assert as assertProperty, jsonValue, property } from 'fast-check';
import type { Json } from '../../lib/json.ts';
import { differenceFrom, sameJson } from './compare-json.ts';

describe('comparing outputs', () => {
  const SAME: [Json, Json][] = [
    [0.1 + 0.2, 0.3],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    [{ a: [1, { c: null }] }, { a: [1, { c: null }] }],
    [1e300, 1e300 * (1 + 1e-10)],
    [0, -0],
    [0, 0.1 + 0.2 - 0.3],
    [{ sum: 0 }, { sum: -5.6e-17 }],
    [-1.5, -1.5000000001],
  ];
  const DIFFERENT: [Json, Json, string][] = [
    [[1, 2], [2, 1], '[0]'],
    [{ a: 1 }, { a: 1, b: null }, 'b'],
    [{ a: 1, b: null }, { a: 1 }, 'b'],
    [{ rows: [{ t: 1 }, { t: 2 }] }, { rows: [{ t: 1 }, { t: 3 }] }, 'rows[1].t'],
    [[1], [1, 2], 'length'],
    [1, '1', ''],
    [0, false, ''],
    [null, {}, ''],
    [{}, [], ''],
    [1, 1.00001, ''],
    [0, 1e-12, ''],
    [6.6e-34, 0, ''],
    [1, Number.POSITIVE_INFINITY, ''],
  ];
  for (const [expected, got] of SAME) {
    it(`${JSON.stringify(expected)} equals ${JSON.stringify(got)}`, () =>
      assert.equal(differenceFrom(expected, got), undefined));
  }
  for (const [expected, got, where] of DIFFERENT) {
    it(`${JSON.stringify(expected)} differs from ${JSON.stringify(got)}`, () =>
      assert.equal(differenceFrom(expected, got), where));
  }
  it('sameJson compares numbers without tolerance', () => {
    assert.equal(sameJson(0.1 + 0.2, 0.3), false);
    assert.equal(sameJson({ a: 1, b: [2] }, { b: [2], a: 1 }), true);
  });
  it('every value equals itself and its copy', () => {
    assertProperty(
      property(jsonValue(), (value) => {
        const copy = JSON.parse(JSON.stringify(value)) as Json;
        return differenceFrom(value as Json, copy) === undefined && sameJson(copy, value as Json);
      }),
    );
  });
  it('inherited members are not compared', () => {
    assert.equal(differenceFrom({ toString: 1 }, {}), 'toString');
  });
});
