import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { abortable, onAbort, whenAborted } from './abort.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

describe('onAbort', () => {
  it('onAbort calls the listener once when the signal aborts', () => {
    const controller = new AbortController();
    let calls = 0;
    onAbort(controller.signal, () => (calls += 1));
    assert.equal(calls, 0);
    controller.abort();
    controller.abort();
    assert.equal(calls, 1);
    assert.equal(listeners(controller.signal), 0);
  });

  it('onAbort calls the listener at once for a signal that is aborted already', () => {
    let calls = 0;
    onAbort(AbortSignal.abort(), () => (calls += 1));
    assert.equal(calls, 1);
  });

  it('a disposed listener is removed from the signal and not called', () => {
    const controller = new AbortController();
    {
      using _listener = onAbort(controller.signal, () => assert.fail('the listener was called'));
      assert.equal(listeners(controller.signal), 1);
    }
    assert.equal(listeners(controller.signal), 0);
    controller.abort();
  });
});

describe('whenAborted', () => {
  it('whenAborted resolves when the signal aborts, also when it is aborted already', async () => {
    const controller = new AbortController();
    const ended = whenAborted(controller.signal);
    controller.abort(new Error('not a failure'));
    await ended;
    await whenAborted(controller.signal);
  });
});

describe('abortable', () => {
  it('abortable returns the result of the work and leaves no listener', async () => {
    const { signal } = new AbortController();
    assert.equal(await abortable(Promise.resolve(7), signal), 7);
    await assert.rejects(abortable(Promise.reject(new Error('broken')), signal), /broken/);
    assert.equal(listeners(signal), 0);
  });

  it('abortable rejects with the reason of the signal before work that ignores the signal ends', async () => {
    const controller = new AbortController();
    const waiting = abortable(new Promise(() => {}), controller.signal);
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(abortable(new Promise(() => {}), controller.signal), /enough/);
  });

  it('abortable rejects with the error of its caller, and work that fails later is no unhandled rejection', async () => {
    const controller = new AbortController();
    const work = Promise.withResolvers<never>();
    const waiting = abortable(work.promise, controller.signal, () => new Error('the call was cancelled'));
    controller.abort();
    await assert.rejects(waiting, /^Error: the call was cancelled$/);
    work.reject(new Error('too late'));
  });
});
