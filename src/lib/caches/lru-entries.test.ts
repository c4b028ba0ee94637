import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LRUCache } from 'lru-cache';
import { entries } from './lru-entries.ts';

describe('the limit of a cache in entries', () => {
  it('the cache drops the entry that was used least recently, and reserves nothing for entries that it does not have', () => {
    const cache = new LRUCache<string, { value: number }>({ ...entries(3), memoMethod: () => ({ value: 0 }) });
    for (const key of ['a', 'b', 'c']) cache.memo(key);
    cache.get('a');
    cache.set('d', { value: 1 });
    assert.deepEqual([...cache.keys()].toSorted(), ['a', 'c', 'd']);
    cache.set('d', { value: 2 });
    cache.delete('a');
    cache.memo('e');
    assert.deepEqual([...cache.keys()].toSorted(), ['c', 'd', 'e']);
    // With a `max`, the package creates arrays of that length.
    assert.deepEqual([cache.max, cache.maxSize, cache.size], [0, 3, 3]);
  });
});
