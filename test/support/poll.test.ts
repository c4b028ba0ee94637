import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { poll, pollAssertion, pollValue, StopPolling } from './poll.ts';

const QUICK = { timeoutMs: 50, intervalMs: 1 };

describe('poll', () => {
  it('poll returns the first value that is neither undefined nor false', async () => {
    const values = [undefined, false as const, 0];
    assert.equal(await poll('a value', () => values.shift(), QUICK), 0);
  });

  it('poll counts an error as a failed attempt', async () => {
    let attempts = 0;
    const result = await poll('a success', () => {
      attempts += 1;
      if (attempts < 3) throw new Error('not yet');
      return attempts;
    });
    assert.equal(result, 3);
  });

  it('a timeout names what was expected, the duration, the attempts and the last error', async () => {
    const cause = new Error('connection refused');
    const failing = poll('a connection', () => Promise.reject(cause), QUICK);
    await assert.rejects(failing, (error: Error) => {
      assert.match(
        error.message,
        /^timed out waiting for a connection after 0\.\d s and \d+ attempts; last: Error: connection refused$/,
      );
      return error.cause === cause;
    });
  });

  it('a timeout of pollValue contains the last value', async () => {
    const failing = pollValue(
      'three entries',
      () => ['a', 'b'],
      ({ length }) => length === 3,
      QUICK,
    );
    await assert.rejects(failing, /three entries .*last: \["a","b"\]$/);
  });

  it('pollAssertion repeats an assertion until it holds, and reports its last failure', async () => {
    let count = 0;
    await pollAssertion('a count of 2', () => assert.equal(++count, 2));
    await assert.rejects(
      pollAssertion('a count of 0', () => assert.equal(count, 0), QUICK),
      /a count of 0 .*last: AssertionError/s,
    );
  });

  it('a check that hangs ends with a timeout', async () => {
    const hanging = poll('a response', () => new Promise<undefined>(() => {}), QUICK);
    await assert.rejects(hanging, /a response .*attempts; last: an attempt that did not finish/);
  });

  it('StopPolling ends polling at once', async () => {
    let attempts = 0;
    const stopped = poll('a port', () => {
      attempts += 1;
      throw new StopPolling('the process has exited');
    });
    await assert.rejects(stopped, /^StopPolling: the process has exited$/);
    assert.equal(attempts, 1);
  });
});
