import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { PRIORITY } from './priority-fifo.ts';
import { DelayingQueue } from './delaying-queue.ts';

describe('the delaying queue', () => {
  it('each key is returned once, at its earliest time, in the order of the times', () => {
    const adds = fc.array(fc.tuple(fc.nat(40).map(String), fc.nat(1_000)), { maxLength: 120 });
    fc.assert(
      fc.property(adds, fc.nat(1_000), (entries, now) => {
        const waiting = new DelayingQueue();
        const earliest = new Map<string, number>();
        for (const [key, readyAt] of entries) {
          waiting.add(key, readyAt, PRIORITY.normal);
          earliest.set(key, Math.min(readyAt, earliest.get(key) ?? readyAt));
        }
        const taken: [string, number][] = [];
        for (let next = waiting.popReady(now); next !== undefined; next = waiting.popReady(now)) {
          taken.push([next.key, next.readyAt]);
        }
        const times = taken.map(([, readyAt]) => readyAt);
        assert.deepEqual(
          times,
          [...times].sort((a, b) => a - b),
        );
        assert.deepEqual(new Map(taken), new Map(taken.map(([key]) => [key, earliest.get(key) ?? -1])));
        assert.equal(taken.length, [...earliest.values()].filter((readyAt) => readyAt <= now).length);
        assert.equal(waiting.size, earliest.size - taken.length);
      }),
    );
  });

  it('a key keeps the highest of its priorities', () => {
    const waiting = new DelayingQueue();
    waiting.add('a', 5, PRIORITY.resync);
    waiting.add('a', 9, PRIORITY.normal);
    waiting.add('a', 7, PRIORITY.resync);
    assert.deepEqual(waiting.popReady(5), { key: 'a', readyAt: 5, priority: PRIORITY.normal });
  });
});
