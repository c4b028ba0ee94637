import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cloneValue } from './structured-clone.ts';
import { GuestUrl } from './url.ts';

describe('structuredClone of the guest', () => {
  it('structuredClone makes an equal value with other objects, also for circles', () => {
    const value: Record<string, unknown> = {
      list: [1, 'x', null, undefined, 2n],
      map: new Map([[{ k: 1 }, new Set([1])]]),
      date: new Date(5),
      expression: /a/gi,
      bytes: new Uint8Array([1, 2, 3]).subarray(1),
      view: new DataView(new ArrayBuffer(3), 1),
      boxed: [Object(1), Object('s')],
      error: new RangeError('x', { cause: { y: 1 } }),
    };
    value['self'] = value;
    const copy = cloneValue(value) as typeof value;
    assert.deepEqual(copy, structuredClone(value));
    assert.equal(copy['self'], copy);
    assert.notEqual(copy['list'], value['list']);
  });

  it('structuredClone shares the buffer of two views and refuses what cannot be cloned', () => {
    const buffer = new ArrayBuffer(4);
    const [first, second] = cloneValue([new Uint8Array(buffer), new Uint16Array(buffer)]) as [Uint8Array, Uint16Array];
    assert.equal(first.buffer, second.buffer);
    assert.notEqual(first.buffer, buffer);
    for (const value of [
      () => 1,
      Symbol('x'),
      { a: [Promise.resolve()] },
      new WeakMap(),
      [][Symbol.iterator](),
      new GuestUrl('http://a/'),
    ]) {
      assert.throws(() => cloneValue(value), { name: 'DataCloneError' });
    }
    assert.throws(() => cloneValue(1, { transfer: [buffer] }), { name: 'DataCloneError' });
  });
});
