import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_STORE_BYTES, desiredStreams } from './topology.ts';

describe('the streams and buckets of an installation', () => {
  it('the limits of all streams and buckets together fit into the store', () => {
    const streams = desiredStreams();
    const bytes = streams.reduce((sum, { max_bytes: max }) => sum + max, 0);
    assert.ok(streams.every(({ max_bytes: max }) => max > 0));
    assert.ok(bytes <= DEFAULT_STORE_BYTES, `${((100 * bytes) / DEFAULT_STORE_BYTES).toFixed(1)} % of the store`);
  });
});
