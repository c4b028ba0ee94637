import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MIN_SESSION_IDLE_MS, SESSION_IDLE_MS, sessionIdleMs } from './session-age.ts';

describe('the time after which idle sessions are closed', () => {
  it('an agent chooses when its idle sessions are closed, from an hour on; without a usable value it is 30 days', () => {
    const cases: [string | undefined, number][] = [
      [undefined, SESSION_IDLE_MS],
      ['1h', 3_600_000],
      ['90m', 5_400_000],
      ['4320h', 180 * 86_400_000],
      ['1s', MIN_SESSION_IDLE_MS],
      ['soon', SESSION_IDLE_MS],
    ];
    for (const [closeSessionsAfter, expected] of cases) {
      const idle = closeSessionsAfter === undefined ? {} : { closeSessionsAfter };
      assert.equal(sessionIdleMs({ idle }), expected, closeSessionsAfter ?? 'absent');
    }
    assert.equal(sessionIdleMs({}), SESSION_IDLE_MS);
  });
});
