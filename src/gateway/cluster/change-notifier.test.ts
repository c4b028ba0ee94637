import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChangeNotifier } from './change-notifier.ts';

describe('the change notifier', () => {
  const settled = async (waiting: Promise<void>): Promise<boolean> => {
    const later = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
    return Promise.race([waiting.then(() => true), later]);
  };

  it('a notification ends every wait for one of its topics, and no other wait', async () => {
    const topics = new ChangeNotifier();
    const { signal } = new AbortController();
    const waiting = [topics.wait(['a', 'b'], signal), topics.wait(['b'], signal), topics.wait(['c'], signal)];
    topics.notify(['d']);
    assert.deepEqual(await Promise.all(waiting.map(settled)), [false, false, false]);
    topics.notify(['b', 'a']);
    assert.deepEqual(await Promise.all(waiting.map(settled)), [true, true, false]);
  });

  it('an aborted signal ends a wait, also when it aborted before the wait', async () => {
    const topics = new ChangeNotifier();
    const aborting = new AbortController();
    const waiting = topics.wait(['a'], aborting.signal);
    aborting.abort();
    assert.equal(await settled(waiting), true);
    assert.equal(await settled(topics.wait(['a'], aborting.signal)), true);
    topics.notify(['a']);
  });

  it('the waits for one topic end over several turns of the event loop, so that other work runs in between', async () => {
    const topics = new ChangeNotifier();
    const { signal } = new AbortController();
    let ended = 0;
    const waiting = Array.from({ length: 100 }, () => topics.wait(['policy'], signal).then(() => (ended += 1)));
    topics.notify(['policy']);
    const endedPerTurn: number[] = [];
    while (ended < waiting.length) {
      const before = ended;
      await new Promise((resolve) => setImmediate(resolve));
      endedPerTurn.push(ended - before);
    }
    assert.ok(Math.max(...endedPerTurn) < waiting.length / 2, endedPerTurn.join(', '));
  });

  it('a wait that was aborted, or notified again, before its turn ends once', async () => {
    const topics = new ChangeNotifier();
    const aborting = new AbortController();
    const { signal } = new AbortController();
    const others = Array.from({ length: 50 }, () => topics.wait(['policy'], signal));
    const last = topics.wait(['policy'], aborting.signal);
    topics.notify(['policy']);
    topics.notify(['policy']);
    aborting.abort();
    assert.equal(await settled(last), true);
    await Promise.all(others);
    const next = topics.wait(['policy'], signal);
    assert.equal(await settled(next), false);
    topics.notify(['policy']);
    assert.equal(await settled(next), true);
  });
});
