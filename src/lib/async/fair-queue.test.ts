import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FairQueue } from './fair-queue.ts';

describe('FairQueue', () => {
  it('a queue runs one piece of work at a time, and its keys take turns', async () => {
    const queue = new FairQueue();
    const order: string[] = [];
    let running = 0;
    const work = (name: string) => async () => {
      running += 1;
      assert.equal(running, 1);
      await Promise.resolve();
      order.push(name);
      running -= 1;
      return name;
    };
    const greedy = ['a1', 'a2', 'a3', 'a4'].map((name) => queue.run('a', work(name)));
    const others = [queue.run('b', work('b1')), queue.run('c', work('c1')), queue.run('b', work('b2'))];
    assert.deepEqual(await Promise.all([...greedy, ...others]), ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']);
    assert.deepEqual(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('a queue with a limit runs so many works at the same time', async () => {
    const queue = new FairQueue(2);
    const gates = [0, 1, 2].map(() => Promise.withResolvers<number>());
    let started = 0;
    const works = gates.map(({ promise }) =>
      queue.run('a', () => {
        started += 1;
        return promise;
      }),
    );
    assert.equal(started, 2);
    gates[1]?.resolve(1);
    await works[1];
    await setImmediate();
    assert.equal(started, 3);
    gates[0]?.resolve(0);
    gates[2]?.resolve(2);
    assert.deepEqual(await Promise.all(works), [0, 1, 2]);
  });

  it('a failure rejects its own call only, and later work runs', async () => {
    const queue = new FairQueue();
    const failed = queue.run('a', () => Promise.reject(new Error('refused')));
    const next = queue.run('a', () => Promise.resolve(1));
    await assert.rejects(failed, /refused/);
    assert.equal(await next, 1);
    assert.equal(await queue.run('b', () => Promise.resolve(2)), 2);
  });
});
