import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { StoredPolicy } from '../kube/types.ts';
import { policyStatus } from './plan.ts';

const NOW = new Date('2031-05-05T11:00:30Z');

function aPolicy(spend?: Spend[]): StoredPolicy {
  const metadata = { name: 'standard', namespace: 'team-a', uid: 'u', resourceVersion: '1', generation: 1 };
  const stored = { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec: {} };
  return { ...stored, ...(spend === undefined ? {} : { status: { spend } }) } as unknown as StoredPolicy;
}

function spent(window: Spend['window'], start: string, inputTokens: number): Spend {
  return { window, start, inputTokens, outputTokens: 0, cost: '0', toolCalls: 0, networkBytes: 0 };
}

function mergedOf(before: Spend[] | undefined, spend: Spend[] | undefined): Spend[] | undefined {
  return policyStatus({ policy: aPolicy(before), agents: 1, specError: undefined, spend, now: NOW }).spend;
}

describe('the spend in the policy status', () => {
  const before = [spent('hour', '2031-05-05T10:00:00.000Z', 70), spent('day', '2031-05-05T00:00:00.000Z', 900)];

  it('the spend in the policy status is the spend from the ledger', () => {
    const after = [spent('hour', '2031-05-05T11:00:00.000Z', 5), spent('day', '2031-05-05T00:00:00.000Z', 905)];
    assert.deepEqual(mergedOf(before, after), after);
    assert.deepEqual(mergedOf(undefined, after), after);
  });

  it('the spend in the policy status does not change while a new window has no spend, so that an unused policy is not written', () => {
    const after = [spent('hour', '2031-05-05T11:00:00.000Z', 0), spent('day', '2031-05-05T00:00:00.000Z', 900)];
    assert.deepEqual(mergedOf(before, after), before);
  });

  it('the spend in the policy status does not change when the ledger cannot be read', () => {
    assert.deepEqual(mergedOf(before, undefined), before);
  });
});
