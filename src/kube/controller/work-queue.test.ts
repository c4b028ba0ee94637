import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_TIMER_MS } from '../../lib/clock.ts';
import { FakeClock, flushPromises } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { createRateLimiter } from './rate-limiter.ts';
import { PRIORITY, RESYNC_EVERY } from './priority-fifo.ts';
import { WorkQueue } from './work-queue.ts';

function aQueue(options: { rankOf?: (key: string) => number } = {}): {
  queue: WorkQueue;
  clock: FakeClock;
  metrics: RecordingMetrics;
} {
  const clock = new FakeClock();
  const metrics = new RecordingMetrics();
  const queue = new WorkQueue({ name: 'agents', clock, limiter: createRateLimiter(clock), metrics, ...options });
  return { queue, clock, metrics };
}

async function takeAll(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.length > 0) {
    const work = await queue.get();
    if (work === undefined) break;
    keys.push(work.key);
    queue.done(work.key);
  }
  return keys;
}

describe('the work queue', () => {
  it('get returns keys in the order of their first add, each once', async () => {
    const { queue } = aQueue();
    for (const key of ['b', 'a', 'b', 'c', 'a']) queue.add(key);
    assert.deepEqual(await takeAll(queue), ['b', 'a', 'c']);
  });

  it('an added key goes to a waiting worker', async () => {
    const { queue } = aQueue();
    const waiting = [queue.get(), queue.get()];
    queue.add('a');
    queue.add('b');
    assert.deepEqual(
      (await Promise.all(waiting)).map((work) => work?.key),
      ['a', 'b'],
    );
  });

  it('a key added while it is processed is returned exactly once more, after done', async () => {
    const { queue } = aQueue();
    queue.add('a');
    await queue.get();
    for (let times = 0; times < 3; times += 1) queue.add('a');
    assert.equal(queue.length, 0);
    queue.done('a');
    assert.deepEqual(await takeAll(queue), ['a']);
    assert.equal(queue.length, 0);
  });

  it('keys of normal priority come before resyncs, and a later add raises the priority', async () => {
    const { queue, metrics } = aQueue();
    for (const key of ['r1', 'r2', 'r3']) queue.add(key, PRIORITY.resync);
    queue.add('c1');
    queue.add('r3');
    queue.add('c1', PRIORITY.resync);
    assert.equal(metrics.gauges['workqueue_depth{0}'], 2);
    assert.equal(metrics.gauges['workqueue_depth{-100}'], 2);
    assert.deepEqual(await takeAll(queue), ['c1', 'r3', 'r1', 'r2']);
  });

  it('ten thousand keys of one namespace delay a key of another namespace by one key', async () => {
    const { queue } = aQueue();
    for (let index = 0; index < 10_000; index += 1) queue.add(`greedy/${index}`);
    queue.add('modest/analyst');
    queue.add('modest/second');
    const first = (await takeAll(queue)).slice(0, 5);
    assert.deepEqual(first, ['greedy/0', 'modest/analyst', 'greedy/1', 'modest/second', 'greedy/2']);
  });

  it('keys of higher rank come first within their namespace, and the others get every ninth turn', async () => {
    const { queue } = aQueue({ rankOf: (key) => (key.includes('high') ? 3 : 0) });
    for (let key = 0; key < 20; key += 1) queue.add(`a/low-${key}`);
    for (let key = 0; key < 20; key += 1) queue.add(`a/high-${key}`);
    const taken = (await takeAll(queue)).map((key) => key.replace(/-.*/, ''));
    assert.equal(taken.length, 40);
    assert.deepEqual(taken.slice(0, 9), [...Array<string>(8).fill('a/high'), 'a/low']);
    assert.equal(taken.slice(0, 22).filter((key) => key === 'a/high').length, 20);
  });

  it('keys of the highest rank of one namespace delay no key of another one', async () => {
    const { queue } = aQueue({ rankOf: (key) => (key.startsWith('loud/') ? 3 : 0) });
    for (let key = 0; key < 100; key += 1) queue.add(`loud/${key}`);
    queue.add('quiet/only');
    assert.equal((await takeAll(queue)).indexOf('quiet/only'), 1);
  });

  it('a resync that is raised keeps its rank', async () => {
    const { queue } = aQueue({ rankOf: (key) => (key === 'a/high' ? 3 : 0) });
    queue.add('a/high', PRIORITY.resync);
    queue.add('a/low');
    queue.add('a/high');
    assert.deepEqual(await takeAll(queue), ['a/high', 'a/low']);
  });

  it('a namespace without a stop of changes does not stop the resyncs', async () => {
    const { queue } = aQueue();
    for (const name of ['a', 'b']) queue.add(`modest/${name}`, PRIORITY.resync);
    const taken: string[] = [];
    for (let index = 0; taken.filter((key) => key.startsWith('modest/')).length < 2; index += 1) {
      assert.ok(index <= 2 * RESYNC_EVERY);
      queue.add('greedy/changing');
      const { key = '' } = (await queue.get()) ?? {};
      taken.push(key);
      queue.done(key);
    }
    assert.equal(taken.indexOf('modest/a'), RESYNC_EVERY - 1);
    assert.equal(taken.indexOf('modest/b'), 2 * RESYNC_EVERY - 1);
  });

  it('a key added while it is processed keeps the higher priority', async () => {
    const { queue } = aQueue();
    queue.add('a', PRIORITY.resync);
    assert.equal((await queue.get())?.priority, PRIORITY.resync);
    queue.add('a', PRIORITY.resync);
    queue.add('a');
    queue.add('b', PRIORITY.resync);
    queue.done('a');
    assert.deepEqual(await queue.get(), { key: 'a', priority: PRIORITY.normal });
  });

  it('addAfter adds a key at the earlier of two times, with a single timer', async () => {
    const { queue, clock } = aQueue();
    queue.addAfter('a', 500);
    queue.addAfter('b', 300);
    queue.addAfter('a', 100);
    queue.addAfter('a', 900);
    await flushPromises();
    assert.deepEqual(clock.pendingDelays(), [100]);
    await clock.advance(99);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.deepEqual(await takeAll(queue), ['a']);
    assert.deepEqual(clock.pendingDelays(), [200]);
    await clock.advance(200);
    assert.deepEqual(await takeAll(queue), ['b']);
    await clock.advance(10_000);
    assert.equal(queue.length, 0);
    assert.deepEqual(clock.pendingDelays(), []);
  });

  it('addAfter adds a key immediately when the delay is not positive', async () => {
    const { queue } = aQueue();
    queue.addAfter('a', 0);
    queue.addAfter('b', -5);
    queue.addAfter('c', Number.NaN);
    assert.deepEqual(await takeAll(queue), ['a', 'b', 'c']);
  });

  it('addAfter supports delays longer than the maximum of a Node timer', async () => {
    const { queue, clock } = aQueue();
    queue.addAfter('a', MAX_TIMER_MS + 1_000);
    assert.deepEqual(clock.pendingDelays(), [MAX_TIMER_MS]);
    await clock.advance(MAX_TIMER_MS);
    assert.equal(queue.length, 0);
    assert.deepEqual(clock.pendingDelays(), [1_000]);
    await clock.advance(1_000);
    assert.equal(queue.length, 1);
  });

  it('addRateLimited increases the delay until the key is forgotten', async () => {
    const { queue, clock, metrics } = aQueue();
    for (const wait of [5, 10, 20]) {
      queue.addRateLimited('a');
      assert.deepEqual(clock.pendingDelays(), [wait]);
      await clock.advance(wait);
      assert.deepEqual(await takeAll(queue), ['a']);
    }
    assert.equal(queue.numRequeues('a'), 3);
    queue.forget('a');
    assert.equal(queue.numRequeues('a'), 0);
    assert.equal(metrics.counts['workqueue_retries_total'], 3);
    assert.equal(metrics.counts['workqueue_adds_total'], 3);
  });

  it('after shutDown the queue returns the queued keys, then undefined, and accepts no keys', async () => {
    const { queue, clock } = aQueue();
    queue.add('a');
    queue.addAfter('later', 10);
    queue.shutDown();
    queue.add('b');
    queue.addAfter('c', 1);
    queue.addRateLimited('d');
    await clock.advance(1_000);
    assert.deepEqual(clock.pendingDelays(), []);
    assert.equal((await queue.get())?.key, 'a');
    assert.equal(await queue.get(), undefined);
  });

  it('shutDown releases waiting workers', async () => {
    const { queue } = aQueue();
    const waiting = [queue.get(), queue.get()];
    queue.shutDown();
    assert.deepEqual(await Promise.all(waiting), [undefined, undefined]);
  });

  it('shutDownWithDrain resolves when all keys are done, including a key that was added while it was processed', async () => {
    const { queue } = aQueue();
    let ended = false;
    queue.add('a');
    await queue.get();
    queue.add('a');
    const drain = queue.shutDownWithDrain().then(() => (ended = true));
    queue.done('a');
    await flushPromises();
    assert.equal(ended, false);
    assert.equal((await queue.get())?.key, 'a');
    queue.done('a');
    await drain;
    assert.equal(await queue.get(), undefined);
    await queue.shutDownWithDrain();
  });

  it('done ignores a key that is not being processed', async () => {
    const { queue } = aQueue();
    queue.add('a');
    queue.done('a');
    assert.deepEqual(await takeAll(queue), ['a']);
    queue.done('a');
    assert.equal(queue.length, 0);
  });
});
