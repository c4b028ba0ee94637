import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIds, ulids } from './ids.ts';

describe('identifiers', () => {
  it('identifiers are unique and valid record names', () => {
    const ids = Array.from({ length: 1_000 }, () => ulids.next('m'));
    assert.equal(new Set(ids).size, 1_000);
    for (const id of ids) assert.match(id, /^m-[0-9a-hjkmnp-tv-z]{26}$/);
  });

  it('identifiers sort by time, whatever their random part', () => {
    const times = [1, 31, 32, 1_700_000_000_000, 1_700_000_000_001];
    const ids = times.map((time, index) =>
      createIds(
        () => time,
        () => (index % 2 === 0 ? 0.99 : 0),
      ).next('m'),
    );
    assert.deepEqual(ids.toSorted(), ids);
  });

  it('an identifier does not reveal the next one of the same millisecond', () => {
    const random = [...Array<number>(16).fill(0), ...Array<number>(16).fill(0.5)];
    const ids = createIds(
      () => 1_700_000_000_000,
      () => random.shift() ?? 0,
    );
    assert.equal(ids.next('m'), `m-01hf7yat00${'0'.repeat(16)}`);
    assert.equal(ids.next('m'), `m-01hf7yat00${'g'.repeat(16)}`);
  });
});
