import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { HistoryResponses } from './history-responses.ts';
import { ReportLimits } from './report-limits.ts';

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
  it('a report larger than the burst is accepted by a full bucket', () => {
    setup().limits.take('a', 1_000_000);
  });
});

describe('HistoryResponses', () => {
  /** A response whose client disconnects when the test says so. */
  const response = () => {
    let close = (): void => undefined;
    const state = { destroyed: false };
    const raw = {
      once: (_event: string, listener: () => void) => (close = listener),
      destroy: () => {
        state.destroyed = true;
        close();
      },
    };
    const reply = { raw } as unknown as Parameters<HistoryResponses['hold']>[2];
    return { reply, state, close: () => close() };
  };
  const isOverloaded = (error: unknown) => isTemperError(error, 'TEMPER_OVERLOADED');
  it('an agent reads one large history at a time, and small ones without a limit', () => {
    const responses = new HistoryResponses(new FakeClock(), { largeBytes: 100 });
    const first = response();
    responses.hold('a', 100, first.reply);
    assert.throws(() => responses.hold('a', 100, response().reply), isOverloaded);
    responses.hold('a', 99, response().reply);
    first.close();
    responses.hold('a', 100, response().reply);
  });
  it('the process holds a few large histories, and disconnects a client that does not read', async () => {
    const clock = new FakeClock();
    const responses = new HistoryResponses(clock, { largeBytes: 1, perProcess: 2, timeoutMs: 1_000 });
    const slow = response();
    responses.hold('a', 1, slow.reply);
    responses.hold('b', 1, response().reply);
    assert.throws(() => responses.hold('c', 1, response().reply), isOverloaded);
    await clock.advance(1_000);
    assert.equal(slow.state.destroyed, true);
    responses.hold('c', 1, response().reply);
  });
});
