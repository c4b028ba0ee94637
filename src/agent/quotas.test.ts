import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { quotaLimits } from './quotas.ts';

describe('quotaLimits', () => {
  it('quotas of a spec become exact numbers', () => {
    assert.deepEqual(quotaLimits({ tokensPerHour: 0, costPerDay: '2.00', networkBytesPerHour: '1Mi' }), {
      tokensPerHour: 0,
      costMicrosPerDay: 2_000_000,
      networkBytesPerHour: 1_048_576,
    });
    assert.deepEqual(quotaLimits(), {});
  });
  it('a malformed quota throws and is never treated as unlimited', () => {
    assert.throws(
      () => quotaLimits({ costPerDay: '2,00' }),
      (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID'),
    );
  });
});
