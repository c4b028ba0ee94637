import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { ReportLimits, REVIEWS } from './report-limits.ts';

describe('ReportLimits', () => {
  const setup = () => {
    const clock = new FakeClock();
    return { clock, limits: new ReportLimits(clock, { perSecond: 100, burst: 1_000, unit: 'bytes' }) };
  };
  it('an agent that reports more than its rate is refused with the time to wait, and no other agent is', () => {
    const { limits } = setup();
    limits.take('loud', 900);
    assert.throws(
      () => limits.take('loud', 300),
      (error) => isTemperError(error, 'TEMPER_RATE_LIMITED') && error.retry === 2_000,
    );
    limits.take('quiet', 1_000);
  });
  it('an agent can report again after the time that the refusal names', async () => {
    const { clock, limits } = setup();
    limits.take('a', 1_000);
    assert.throws(() => limits.take('a', 500));
    await clock.advance(5_000);
    limits.take('a', 500);
  });
  it('the refusal names a rate below one per second by its interval', () => {
    const limits = new ReportLimits(new FakeClock(), REVIEWS);
    limits.take('a', 100);
    assert.throws(
      () => limits.take('a', 1),
      (error) =>
        isTemperError(error, 'TEMPER_RATE_LIMITED') && / tools for review .* one per 10 s;/.test(error.message),
    );
    const bytes = setup().limits;
    bytes.take('a', 1_000);
    assert.throws(() => bytes.take('a', 1), /more bytes than its rate of 100 per second/);
  });
  it('a report larger than the burst is accepted by a full bucket', () => {
    setup().limits.take('a', 1_000_000);
  });
});
