import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toCounts } from '../../ledger/account.ts';
import { systemClock } from '../../lib/clock.ts';
import { newAccountRecord } from './account-record.ts';
import { accountKey } from './account-key.ts';
import { initialSpendFrom, policyAccount, spendSummary } from './spend-summary.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';

const NOON = Date.UTC(2031, 4, 5, 12);
const clock = { ...systemClock, now: () => new Date(NOON) };

function storeWith(documents: Record<string, object>): DocumentStore {
  return {
    get: async (key) =>
      key in documents ? { value: JSON.parse(JSON.stringify(documents[key])), revision: 1 } : undefined,
    write: async () => undefined,
  };
}

describe('spend of a policy', () => {
  it('spendSummary returns the status format, from which a new record can start', async () => {
    const document = newAccountRecord('epoch-1', [], NOON);
    document.spent.month.counts = toCounts({ inputTokens: 5, outputTokens: 7, costMicros: 1_230_000, toolCalls: 2 });
    const store = storeWith({ [accountKey(policyAccount('uid-1'))]: document });
    const spend = await spendSummary(store, clock, policyAccount('uid-1'));
    const month = spend?.find(({ window }) => window === 'month');
    assert.deepEqual(month, {
      window: 'month',
      start: '2031-05-01T00:00:00.000Z',
      inputTokens: 5,
      outputTokens: 7,
      cost: '1.23',
      toolCalls: 2,
      networkBytes: 0,
    });
    const again = newAccountRecord('epoch-2', initialSpendFrom(spend), NOON);
    assert.deepEqual(again.spent.month, document.spent.month);
  });

  it('spendSummary returns undefined for an account without a record', async () => {
    assert.equal(await spendSummary(storeWith({}), clock, policyAccount('uid-1')), undefined);
  });

  it('initialSpendFrom ignores windows and costs that it cannot parse', () => {
    const window = { window: 'day', inputTokens: 1, outputTokens: 1, toolCalls: 0, networkBytes: 0 } as const;
    assert.deepEqual(initialSpendFrom([{ ...window, start: 'yesterday', cost: '1' }]), []);
    assert.equal(
      initialSpendFrom([{ ...window, start: '2031-05-05T00:00:00Z', cost: 'dear' }])[0]?.spent.costMicros,
      0,
    );
  });

  it('accountKey encodes characters that would change the key of another account', () => {
    assert.equal(accountKey('policy/0b1-c'), 'policy.0b1-c');
    assert.equal(accountKey('agent/a.b>*'), 'agent.a=2e=b=3e==2a=');
  });
});
