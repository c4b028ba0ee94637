import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { StoredPolicy } from '../kube-types.ts';
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

function foldOf(before: Spend[] | undefined, spend: Spend[] | undefined): Spend[] | undefined {
  return policyStatus({ policy: aPolicy(before), agents: 1, specProblem: undefined, spend, now: NOW }).spend;
}

describe('the spend in the status of a policy', () => {
  const before = [spent('hour', '2031-05-05T10:00:00.000Z', 70), spent('day', '2031-05-05T00:00:00.000Z', 900)];

  it('is what the ledger says', () => {
    const after = [spent('hour', '2031-05-05T11:00:00.000Z', 5), spent('day', '2031-05-05T00:00:00.000Z', 905)];
    assert.deepEqual(foldOf(before, after), after);
    assert.deepEqual(foldOf(undefined, after), after);
  });

  it('stays while a new window has seen nothing, so that who spends nothing is not written', () => {
    const after = [spent('hour', '2031-05-05T11:00:00.000Z', 0), spent('day', '2031-05-05T00:00:00.000Z', 900)];
    assert.deepEqual(foldOf(before, after), before);
  });

  it('stays when the ledger does not answer', () => {
    assert.deepEqual(foldOf(before, undefined), before);
  });
});
