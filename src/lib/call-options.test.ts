import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { systemClock } from './clock.ts';
import { type CallOptions, withTimeout } from './call-options.ts';

const parent = (deadline: number): CallOptions => ({ signal: NEVER_ABORTED, deadline, key: 'key' });

describe('call options with a timeout', () => {
  it('withTimeout aborts at the earlier of its own timeout and the parent deadline', async () => {
    for (const [deadline, milliseconds] of [
      [systemClock.monotonic() + 60_000, 5],
      [systemClock.monotonic() + 5, 60_000],
    ] as const) {
      const reason: unknown = await withTimeout(parent(deadline), systemClock, milliseconds, (op) => {
        return new Promise((resolve) => op.signal.addEventListener('abort', () => resolve(op.signal.reason)));
      });
      assert.ok(reason instanceof DOMException && reason.name === 'TimeoutError');
    }
  });
  it('withTimeout accepts an infinite timeout', async () => {
    const signal = await withTimeout(
      parent(Number.POSITIVE_INFINITY),
      systemClock,
      Number.POSITIVE_INFINITY,
      async (op) => {
        // A timer with too long a delay fires after one millisecond, before a later timer of one millisecond.
        await systemClock.sleep(1, op.signal);
        return op.signal;
      },
    );
    assert.equal(signal.aborted, false);
  });
});
