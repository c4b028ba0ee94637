import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createRateLimiter } from './rate-limiter.ts';

describe('the rate limiter', () => {
  it('the delay of a key doubles with each failure, up to five minutes', () => {
    const limiter = createRateLimiter(new FakeClock(), { burst: 1_000_000 });
    const waits = Array.from({ length: 20 }, () => limiter.when('a'));
    assert.deepEqual(waits.slice(0, 5), [5, 10, 20, 40, 80]);
    assert.deepEqual(waits.slice(-3), [300_000, 300_000, 300_000]);
    assert.equal(limiter.failures('a'), 20);
    for (let more = 0; more < 2_000; more += 1) limiter.when('a');
    assert.equal(limiter.when('a'), 300_000);
  });

  it('failures are counted per key and reset by forget', () => {
    const limiter = createRateLimiter(new FakeClock());
    limiter.when('a');
    limiter.when('a');
    assert.equal(limiter.when('b'), 5);
    limiter.forget('a');
    assert.equal(limiter.failures('a'), 0);
    assert.equal(limiter.when('a'), 5);
  });

  it('after a burst of one hundred retries, one hundred retries per second pass', async () => {
    const clock = new FakeClock();
    const limiter = createRateLimiter(clock);
    const waits = Array.from({ length: 103 }, (_, index) => limiter.when(`key-${index}`));
    assert.ok(waits.slice(0, 100).every((wait) => wait === 5));
    assert.deepEqual(waits.slice(100), [10, 20, 30]);
    await clock.advance(30);
    assert.equal(limiter.when('later'), 10);
    await clock.advance(3_600_000);
    assert.equal(limiter.when('much later'), 5);
  });

  it('the last of a hundred thousand keys that failed together waits half a minute, and so does the next failure', async () => {
    const clock = new FakeClock();
    const limiter = createRateLimiter(clock);
    const waits = Array.from({ length: 100_000 }, (_, index) => limiter.when(`key-${index}`));
    assert.equal(Math.max(...waits), 30_000);
    assert.deepEqual([waits[3_099], waits[99_999]], [30_000, 30_000]);
    await clock.advance(30_000);
    assert.equal(limiter.when('after the outage'), 10);
  });
});
