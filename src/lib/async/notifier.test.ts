import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { Notifier } from './notifier.ts';

describe('Notifier', () => {
  it('notifyAll resolves all waits so far and leaves no listener on their signals', async () => {
    const notifier = new Notifier();
    const { signal } = new AbortController();
    const waits = Promise.all([notifier.wait(signal), notifier.wait(signal)]);
    assert.equal(getEventListeners(signal, 'abort').length, 2);
    notifier.notifyAll();
    await waits;
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('a notification before a wait does not resolve it', async () => {
    const notifier = new Notifier();
    const controller = new AbortController();
    notifier.notifyAll();
    let isResolved = false;
    const wait = notifier.wait(controller.signal).then(() => (isResolved = true));
    await new Promise(setImmediate);
    assert.equal(isResolved, false);
    controller.abort();
    await wait;
  });

  it('an aborted signal resolves a wait, before and after the call', async () => {
    const notifier = new Notifier();
    const controller = new AbortController();
    const wait = notifier.wait(controller.signal);
    controller.abort(new Error('not a failure'));
    await wait;
    await notifier.wait(controller.signal);
  });
});
