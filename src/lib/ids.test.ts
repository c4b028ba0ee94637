import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ulids } from './ids.ts';

describe('identifiers', () => {
  it('identifiers are unique, sort by time, and are valid record names', async () => {
    const early = Array.from({ length: 1_000 }, () => ulids.next('m'));
    assert.equal(new Set(early).size, 1_000);
    for (const id of early) assert.match(id, /^m-[0-9a-hjkmnp-tv-z]{26}$/);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const late = ulids.next('m');
    assert.ok(early.every((id) => id < late));
  });
});
