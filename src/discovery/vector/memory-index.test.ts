import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { vectorIndexContract } from '../../../test/contracts/vector-index.ts';
import { MemoryVectorIndex } from './memory-index.ts';

vectorIndexContract('in memory', async () => new MemoryVectorIndex());

describe('the limits of the vectors in memory', () => {
  const space = { namespace: 'team-a', dimensions: 2 };
  const entry = (id: string) => ({ id, vector: Float32Array.of(1, 0) });

  it('the vectors that were used longest ago leave first', async () => {
    const index = new MemoryVectorIndex({ most: 2 });
    await index.upsert(space, [entry('a'), entry('b')]);
    await index.query(space, [Float32Array.of(1, 0)], { ids: ['a'], most: 1 });
    await index.upsert(space, [entry('c')]);
    assert.deepEqual(await index.missing(space, ['a', 'b', 'c']), ['b']);
  });

  it('the bytes are bounded, and a vector that is larger is not kept', async () => {
    const index = new MemoryVectorIndex({ bytes: 16 });
    await index.upsert(space, [entry('a'), entry('b'), entry('c'), { id: 'd', vector: new Float32Array(5) }]);
    assert.equal(index.size, 2);
    assert.deepEqual(await index.missing(space, ['a', 'b', 'c']), ['a']);
  });
});
