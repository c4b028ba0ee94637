import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Topics } from './topics.ts';

describe('waiting for a topic', () => {
  const settled = async (waiting: Promise<void>): Promise<boolean> => {
    const later = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
    return Promise.race([waiting.then(() => true), later]);
  };

  it('ends with any of the topics, for all who wait, and with no other', async () => {
    const topics = new Topics();
    const { signal } = new AbortController();
    const waiting = [topics.wait(['a', 'b'], signal), topics.wait(['b'], signal), topics.wait(['c'], signal)];
    topics.notify(['d']);
    assert.deepEqual(await Promise.all(waiting.map(settled)), [false, false, false]);
    topics.notify(['b', 'a']);
    assert.deepEqual(await Promise.all(waiting.map(settled)), [true, true, false]);
  });

  it('ends when it is given up, before or after it began', async () => {
    const topics = new Topics();
    const given = new AbortController();
    const waiting = topics.wait(['a'], given.signal);
    given.abort();
    assert.equal(await settled(waiting), true);
    assert.equal(await settled(topics.wait(['a'], given.signal)), true);
    topics.notify(['a']);
  });
});
