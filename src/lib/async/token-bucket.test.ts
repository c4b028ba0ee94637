import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { TokenBucket } from './token-bucket.ts';

function bucketAt(options: { burst: number; perSecond: number }) {
  const clock = { ms: 0, monotonic: () => clock.ms };
  return { clock, bucket: new TokenBucket(clock, options) };
}

describe('TokenBucket', () => {
  it('a full bucket gives its burst at once, then one token per refill', () => {
    const { clock, bucket } = bucketAt({ burst: 2, perSecond: 10 });
    assert.deepEqual([bucket.tryTake(), bucket.tryTake(), bucket.tryTake()], [true, true, false]);
    clock.ms = 99;
    assert.equal(bucket.tryTake(), false);
    clock.ms = 100;
    assert.deepEqual([bucket.tryTake(), bucket.tryTake()], [true, false]);
  });

  it('an idle bucket holds at most its burst', () => {
    const { clock, bucket } = bucketAt({ burst: 3, perSecond: 1 });
    clock.ms = 1_000_000;
    assert.equal(bucket.available(), 3);
  });

  it('reserve returns how long to wait, longer for each further call', () => {
    const { clock, bucket } = bucketAt({ burst: 1, perSecond: 10 });
    assert.deepEqual([bucket.reserve(), bucket.reserve(), bucket.reserve()], [0, 100, 200]);
    clock.ms = 300;
    assert.equal(bucket.reserve(), 0);
  });

  it('a bucket states the wait for a number of tokens, and for at most its burst', () => {
    const { clock, bucket } = bucketAt({ burst: 2, perSecond: 10 });
    assert.deepEqual([bucket.waitMs(2), bucket.waitMs(99)], [0, 0]);
    bucket.reserve(3);
    assert.deepEqual([bucket.waitMs(0), bucket.waitMs(1), bucket.waitMs(99)], [100, 200, 300]);
    clock.ms = 300;
    assert.equal(bucket.waitMs(99), 0);
  });

  it('tokens that are given back can be taken again, and never exceed the burst', () => {
    const { bucket } = bucketAt({ burst: 2, perSecond: 1 });
    assert.deepEqual([bucket.tryTake(2), bucket.tryTake()], [true, false]);
    bucket.giveBack();
    assert.deepEqual([bucket.tryTake(), bucket.tryTake()], [true, false]);
    bucket.giveBack(5);
    assert.equal(bucket.available(), 2);
  });

  it('no sequence of calls takes more than the burst and what was refilled', () => {
    const pauses = fc.array(fc.nat(500), { maxLength: 200 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 50 }),
        pauses,
        (burst, perSecond, steps) => {
          const { clock, bucket } = bucketAt({ burst, perSecond });
          let taken = 0;
          for (const pause of steps) {
            clock.ms += pause;
            if (bucket.tryTake()) taken += 1;
          }
          assert.ok(taken <= burst + (clock.ms / 1_000) * perSecond + 1e-6);
        },
      ),
    );
  });
});
