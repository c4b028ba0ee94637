import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countsOf } from '../ledger/account.ts';
import { systemClock } from '../lib/clock.ts';
import { newDocument } from './ledger-document.ts';
import { accountKey } from './ledger-keys.ts';
import { openingOf, policyAccount, spendSummary } from './ledger-spend.ts';
import type { LedgerStore } from './ledger-store.ts';

const NOON = Date.UTC(2031, 4, 5, 12);
const clock = { ...systemClock, now: () => new Date(NOON) };

function storeWith(documents: Record<string, object>): LedgerStore {
  return {
    get: async (key) =>
      key in documents ? { value: JSON.parse(JSON.stringify(documents[key])), revision: 1 } : undefined,
    write: async () => undefined,
  };
}

describe('spend of a policy', () => {
  it('spendSummary returns the status format, from which a new record can start', async () => {
    const document = newDocument('epoch-1', [], NOON);
    document.spent.month.counts = countsOf({ inputTokens: 5, outputTokens: 7, costMicros: 1_230_000, toolCalls: 2 });
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
    const again = newDocument('epoch-2', openingOf(spend), NOON);
    assert.deepEqual(again.spent.month, document.spent.month);
  });

  it('spendSummary returns undefined for an account without a record', async () => {
    assert.equal(await spendSummary(storeWith({}), clock, policyAccount('uid-1')), undefined);
  });

  it('initialSpendFrom ignores windows and costs that it cannot parse', () => {
    const window = { window: 'day', inputTokens: 1, outputTokens: 1, toolCalls: 0, networkBytes: 0 } as const;
    assert.deepEqual(openingOf([{ ...window, start: 'yesterday', cost: '1' }]), []);
    assert.equal(openingOf([{ ...window, start: '2031-05-05T00:00:00Z', cost: 'dear' }])[0]?.spent.costMicros, 0);
  });

  it('accountKey encodes characters that would change the key of another account', () => {
    assert.equal(accountKey('policy/0b1-c'), 'policy.0b1-c');
    assert.equal(accountKey('agent/a.b>*'), 'agent.a=2e=b=3e==2a=');
  });
});
