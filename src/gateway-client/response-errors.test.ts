import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorFromResponse, retryDelayMs } from './response-errors.ts';

const overloaded = errorFromResponse(503, undefined, '2');
const limited = errorFromResponse(429, undefined, '2');

describe('the wait before the next attempt', () => {
  it('clients that got the same Retry-After come back at different times, and none too early', () => {
    for (const error of [overloaded, limited]) {
      const waits = [0, 0.5, 1].map((chance) => retryDelayMs(error, 0, chance));
      assert.deepEqual(waits, [2_000, 2_500, 3_000]);
    }
  });

  it('each further refusal of an overloaded gateway doubles the wait, up to five seconds; a rate limit states the time itself', () => {
    const waits = (error: typeof overloaded) => [0, 4, 5, 6, 7, 12].map((attempt) => retryDelayMs(error, attempt, 1));
    assert.deepEqual(waits(overloaded), [3_000, 3_000, 3_200, 5_000, 5_000, 5_000]);
    assert.deepEqual(new Set(waits(limited)), new Set([3_000]));
  });

  it('a call is not repeated when it must wait longer than fifteen seconds', () => {
    assert.equal(retryDelayMs(errorFromResponse(503, undefined, '16'), 0, 0), undefined);
  });
});
