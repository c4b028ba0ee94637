import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Trend } from './trend.ts';

describe('the trend of a soak run', () => {
  it('the slope is the change per hour, without the first third of the samples', () => {
    const trend = new Trend();
    for (let minute = 0; minute < 60; minute += 1) trend.add(minute * 60_000, minute < 20 ? 0 : 100 + minute);
    assert.ok(Math.abs(trend.slope() - 60) < 1e-6, String(trend.slope()));
    assert.equal(trend.last, 159);
  });

  it('samples without a change, a single one or none have no slope', () => {
    const trend = new Trend();
    assert.equal(trend.slope(), 0);
    for (let minute = 0; minute < 3; minute += 1) trend.add(minute, 5);
    assert.equal(trend.slope(), 0);
  });
});
