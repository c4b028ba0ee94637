import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Generations } from './generations.ts';

/** Stores messages of 10 bytes from a sequence on, and returns the cuts. */
function store(generations: Generations, from: number, count: number, share: number, agent = 'a') {
  const sequences = Array.from({ length: count }, (_, index) => from + index);
  return sequences.flatMap((sequence) => generations.add(agent, 10, sequence, share) ?? []);
}

describe('the generations of what an agent stores', () => {
  it('messages within half a share remove nothing', () => {
    assert.deepEqual(store(new Generations(), 1, 4, 100), []);
  });

  it('each full generation removes what is older than itself', () => {
    assert.deepEqual(
      store(new Generations(), 1, 15, 100).map(({ before }) => before),
      [1, 6, 11],
    );
  });

  it('at most a share stays and, once it was full, at least half of it', () => {
    const generations = new Generations();
    let first = 1;
    for (let sequence = 1; sequence <= 1_000; sequence += 1) {
      const cut = generations.add('a', 10, sequence, 200);
      if (cut !== undefined) first = Math.max(first, cut.before);
      const kept = 10 * (sequence - first + 1);
      assert.ok(kept <= 200, `${kept} bytes at ${sequence}`);
      if (sequence > 10) assert.ok(kept >= 100, `${kept} bytes at ${sequence}`);
    }
  });

  it('a cut names every agent of both generations', () => {
    const generations = new Generations();
    const cuts = ['a', 'b', 'c', 'd'].map((agent, index) => store(generations, 1 + 5 * index, 5, 100, agent));
    assert.deepEqual(
      cuts.flat().map(({ agents }) => agents),
      [['a'], ['b', 'a'], ['c', 'b'], ['d', 'c']],
    );
  });

  it('a message larger than the share is a generation of its own', () => {
    const generations = new Generations();
    assert.equal(generations.add('a', 10, 1, 100), undefined);
    assert.deepEqual(generations.add('a', 1_000, 2, 100), { before: 1, agents: ['a'] });
    assert.deepEqual(generations.add('a', 1_000, 3, 100), { before: 3, agents: ['a'] });
  });

  it('a message that another one overtook is within its generation', () => {
    const generations = new Generations();
    generations.add('a', 10, 8, 40);
    assert.deepEqual(generations.add('a', 10, 7, 40), { before: 7, agents: ['a'] });
  });
});
