import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isTemperError } from '../lib/errors.ts';
import { parseDecimalMicros, parseDuration, parseMillicores, parseQuantityBytes } from './quantities.ts';

const refused = (run: () => unknown): void => {
  assert.throws(run, (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID'));
};

describe('quantities', () => {
  it('the parser reads durations into milliseconds', () => {
    assert.equal(parseDuration('250ms'), 250);
    assert.equal(parseDuration('90s'), 90_000);
    assert.equal(parseDuration('1h30m'), 5_400_000);
    assert.equal(parseDuration('720h'), 2_592_000_000);
    for (const text of ['', '5', '5 s', '-5s', '1.5h', 's', '1d', `${'9'.repeat(20)}h`, '1s'.repeat(40)]) {
      refused(() => parseDuration(text));
    }
  });

  it('the parser reads byte quantities and rounds up', () => {
    assert.equal(parseQuantityBytes('128Mi'), 134_217_728);
    assert.equal(parseQuantityBytes('1.5Gi'), 1_610_612_736);
    assert.equal(parseQuantityBytes('500k'), 500_000);
    assert.equal(parseQuantityBytes('0.0001k'), 1);
    for (const text of ['', '128m', '128MB', '128 Mi', '-1', '1e3', `${'9'.repeat(17)}Ti`]) {
      refused(() => parseQuantityBytes(text));
    }
  });

  it('the parser reads CPU quantities into millicores', () => {
    assert.equal(parseMillicores('500m'), 500);
    assert.equal(parseMillicores('2'), 2_000);
    assert.equal(parseMillicores('0.5'), 500);
    for (const text of ['', 'm', '0.5m', '1.2345', '-1']) refused(() => parseMillicores(text));
  });

  it('the parser reads decimals into millionths without floating-point arithmetic', () => {
    fc.assert(
      fc.property(fc.nat({ max: 999_999_999 }), fc.nat({ max: 999_999 }), (whole, fraction) => {
        const text = `${whole}.${String(fraction).padStart(6, '0')}`;
        assert.equal(parseDecimalMicros(text), whole * 1_000_000 + fraction);
      }),
    );
    assert.equal(parseDecimalMicros('2.00'), 2_000_000);
    assert.equal(parseDecimalMicros('0.1'), 100_000);
    for (const text of ['', '2.', '.5', '-1', '1e3', '1,000', '0.0000001']) refused(() => parseDecimalMicros(text));
  });
});
