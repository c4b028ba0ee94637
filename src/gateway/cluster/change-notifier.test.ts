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
});
