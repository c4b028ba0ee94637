import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { quotaLimits } from './quotas.ts';

describe('the quotas of a spec', () => {
  it('become exact numbers', () => {
    assert.deepEqual(quotaLimits({ tokensPerHour: 0, costPerDay: '2.00', networkBytesPerHour: '1Mi' }), {
      tokensPerHour: 0,
      costMicrosPerDay: 2_000_000,
      networkBytesPerHour: 1_048_576,
    });
    assert.deepEqual(quotaLimits(), {});
  });
  it('are refused when malformed, never taken for no limit', () => {
    assert.throws(
      () => quotaLimits({ costPerDay: '2,00' }),
      (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID'),
    );
  });
});
