import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Denial } from './port.ts';
import { quotaExceeded } from './quota-exceeded.ts';
import { QUOTAS } from './quotas.ts';

const denial = (quota: string, used: number, limit: number): Denial => ({
  granted: false,
  quota,
  used,
  limit,
  resumesAt: '2031-05-04T11:00:00.000Z',
});

describe('quotaExceeded', () => {
  it('the error names the quota in its unit, the need of the call, the reset time and the next step', () => {
    const maximum = { inputTokens: 1_200, outputTokens: 4_096, costMicros: 13_488, toolCalls: 1 };
    const cases = [
      [denial('spec.quotas.tokensPerHour', 98_000, 100_000), '98,000 of 100,000 tokens', '5,296'],
      [denial('TrustPolicy "a.b" spec.quotas.costPerMonth', 1_990_000, 2_000_000), '1.99 of 2 dollars', '0.013488'],
      [denial('spec.quotas.toolCallsPerMinute', 10, 10), '10 of 10 tool calls', '1'],
    ] as const;
    for (const [denied, usage, need] of cases) {
      const { code, message, details } = quotaExceeded(denied, maximum);
      assert.equal(code, 'TEMPER_QUOTA_EXCEEDED');
      assert.equal(
        message,
        `${usage} allowed by ${denied.quota} are used, and this call may need ${need}; resumes 2031-05-04T11:00:00.000Z; raise the quota to continue now`,
      );
      const { granted: _, ...expected } = denied;
      assert.deepEqual(details, expected);
    }
  });

  it('every quota of the table has its own field and its own limit', () => {
    assert.equal(new Set(QUOTAS.map(({ field }) => field)).size, QUOTAS.length);
    assert.equal(new Set(QUOTAS.map(({ limit }) => limit)).size, QUOTAS.length);
  });
});
