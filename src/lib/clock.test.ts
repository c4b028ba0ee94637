import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { systemClock } from './clock.ts';

describe('the system clock', () => {
  it('a sleep ends after its time and leaves no listener', async () => {
    const { signal } = new AbortController();
    const start = systemClock.monotonic();
    await systemClock.sleep(20, signal);
    assert.ok(systemClock.monotonic() - start >= 19);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('a sleep ends with the reason of its signal, before it begins or during it', async () => {
    const [early, late] = [new AbortController(), new AbortController()];
    const [one, two] = [new Error('early'), new Error('late')];
    early.abort(one);
    await assert.rejects(systemClock.sleep(3_600_000, early.signal), one);
    const sleeping = systemClock.sleep(3_600_000, late.signal);
    late.abort(two);
    await assert.rejects(sleeping, two);
  });
});
