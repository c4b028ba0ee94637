import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Account, toCounts, emptyAccount, rollAccount } from '../../ledger/account.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import { StatusThrottle } from '../agent/deferral/status-throttle.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';
import { exhaustedBudget, budgetSummary, nearlyUsedBudget } from './quota-conditions.ts';
import { modelFailure, ProviderHealthTracker } from './model-conditions.ts';

const NOW = new Date('2031-05-05T10:20:00Z');

function anAgent(spec: object, status: object = {}): StoredAgent {
  const metadata = { name: 'analyst', namespace: 'team-a', uid: 'u' };
  return { metadata, spec: { model: { primary: 'openai/a' }, ...spec }, status } as unknown as StoredAgent;
}

const policy = (quotas: object) => ({ metadata: { name: 'standard' }, spec: { quotas } }) as unknown as StoredPolicy;

function spent(inputTokens: number, costMicros = 0): { spent: Account; charged: Account } {
  const account = emptyAccount();
  rollAccount(account, NOW.getTime());
  for (const window of ['hour', 'day', 'month'] as const)
    account[window].counts = toCounts({ inputTokens, costMicros });
  return { spent: account, charged: account };
}

describe('the BudgetAvailable condition', () => {
  const problem = (quotas: object, own: number, shared: object = {}, all = 0, money = 0) =>
    exhaustedBudget(
      anAgent({ quotas }),
      policy(shared),
      { own: spent(own, money), policy: spent(all, money) },
      NOW.getTime(),
    );

  it('the BudgetAvailable condition is False when less remains than one response may use, and names the quota and the resume time', () => {
    assert.equal(problem({ tokensPerHour: 100_000 }, 95_000), undefined);
    const { reason, message = '' } = problem({ tokensPerHour: 100_000 }, 96_000) ?? {};
    assert.equal(reason, 'TokenQuotaExceeded');
    assert.match(
      message,
      /^less than one response may use remains of the 100,000 tokens allowed by spec\.quotas\.tokensPerHour; resumes 2031-05-05T11:00Z/,
    );
  });

  it('the BudgetAvailable condition has the same message while more is spent, so that no status is written', () => {
    assert.deepEqual(problem({ tokensPerHour: 100_000 }, 96_000), problem({ tokensPerHour: 100_000 }, 99_000));
  });

  it('the BudgetAvailable condition names the quota that resumes last, also a quota of the policy', () => {
    const found = problem({ tokensPerHour: 100 }, 100, { costPerMonth: '2.00' }, 100, 2_000_000);
    assert.equal(found?.reason, 'CostQuotaExceeded');
    assert.match(
      found.message,
      /2 dollars allowed by TrustPolicy "standard" spec\.quotas\.costPerMonth; .* 2031-06-01T00:00Z/,
    );
  });

  it('the BudgetAvailable condition is True with a reason of its own from 80 % of a quota, with the same message while more is spent', () => {
    const nearly = (own: number, quotas: object = { tokensPerHour: 100_000 }, shared: object = {}, money = 0) =>
      nearlyUsedBudget(
        anAgent({ quotas }),
        policy(shared),
        { own: spent(own, money), policy: spent(own, money) },
        NOW.getTime(),
      );
    assert.equal(nearly(79_999), undefined);
    assert.deepEqual(nearly(80_000), {
      type: 'BudgetAvailable',
      status: 'True',
      reason: 'QuotaNearlyUsed',
      message:
        'at least 80 % of the 100,000 tokens allowed by spec.quotas.tokensPerHour are used; the window ends 2031-05-05T11:00Z',
    });
    assert.deepEqual(nearly(80_000), nearly(94_000));
    const both = nearly(90_000, { tokensPerHour: 100_000 }, { costPerHour: '1', costPerDay: '2' }, 1_900_000);
    assert.match(
      both?.message ?? '',
      /2 dollars allowed by TrustPolicy "standard" spec\.quotas\.costPerDay.*05-06T00:00Z/,
    );
    assert.equal(nearly(1, { tokensPerHour: 0 }), undefined, 'a quota of 0 is exhausted');
  });

  it('the BudgetAvailable condition has a one-line summary of the quota with the highest usage', () => {
    const quotas = { tokensPerHour: 100_000, tokensPerDay: 2_000_000, costPerDay: '2.00' };
    assert.equal(budgetSummary(anAgent({ quotas }), { own: spent(11_400), policy: undefined }), '11% of 100k tok/h');
    assert.equal(budgetSummary(anAgent({ quotas }), { own: spent(0, 900_000), policy: undefined }), '45% of 2 $/d');
  });

  it('the BudgetAvailable condition has the tokens of the day as the summary of an agent without quotas, once the agent used some', () => {
    assert.equal(budgetSummary(anAgent({}), { own: spent(12_345), policy: undefined }), '12.3k tokens today');
    assert.equal(budgetSummary(anAgent({}), { own: undefined, policy: undefined }), undefined);
  });
});

describe('the ModelAvailable condition', () => {
  const health = (provider: string, state: ProviderHealth['state'], age = 60_000): ProviderHealth => ({
    provider,
    state,
    since: new Date(NOW.getTime() - age).toISOString(),
    names: [`default/${provider}`],
  });
  const problem = (model: object, ...states: ProviderHealth[]) => {
    const providers = new ProviderHealthTracker();
    providers.update(states, NOW);
    return modelFailure(anAgent({ model }), providers);
  };

  it('the ModelAvailable condition is undefined while no failure is known', () => {
    assert.equal(problem({ primary: 'openai/a' }), undefined);
    assert.equal(problem({ primary: 'openai/a' }, health('openai', 'Available')), undefined);
  });

  it('the ModelAvailable condition is False while the provider fails, for every name of the model, and names the provider that rejects the key', () => {
    for (const primary of ['openai/a', 'default/openai']) {
      assert.equal(problem({ primary }, health('openai', 'Unavailable'))?.reason, 'ModelUnavailable');
    }
    const refused = problem({ primary: 'openai/a' }, health('openai', 'Unauthorized'));
    assert.deepEqual([refused?.status, refused?.reason], ['False', 'ModelUnauthorized']);
    assert.match(refused?.message ?? '', /provider "openai" rejects the key since 2031-05-05T10:19Z.*rotate the key/);
  });

  it('the ModelAvailable condition is True while a fallback is available', () => {
    const model = { primary: 'openai/a', fallbacks: ['anthropic/b'] };
    const found = problem(model, health('openai', 'Unavailable'), health('anthropic', 'Available'));
    assert.deepEqual([found?.status, found?.reason], ['True', 'FallbackInUse']);
    const both = problem(model, health('openai', 'Unavailable'), health('anthropic', 'Unauthorized'));
    assert.deepEqual([both?.status, both?.reason], ['False', 'ModelUnavailable']);
  });

  it('the ModelAvailable condition ignores a provider state that has not lasted long enough', () => {
    assert.equal(problem({ primary: 'openai/a' }, health('openai', 'Unavailable', 5_000)), undefined);
    const providers = new ProviderHealthTracker();
    providers.update([health('openai', 'Unavailable')], NOW);
    providers.update([health('openai', 'Available', 5_000)], NOW);
    assert.equal(providers.failureOf('openai/a')?.state, 'Unavailable');
    providers.update([health('openai', 'Available')], NOW);
    assert.equal(providers.failureOf('openai/a'), undefined);
  });
});

describe('the status throttle', () => {
  const budget = { type: 'BudgetAvailable', status: 'False', reason: 'TokenQuotaExceeded', message: 'm' } as const;

  it('the status throttle requeues an agent whose status lacks a condition', () => {
    const throttle = new StatusThrottle(systemClock);
    assert.equal(throttle.isChanged(anAgent({}), {}), false);
    assert.equal(throttle.isChanged(anAgent({}), { budget }), true);
    assert.equal(throttle.isChanged(anAgent({}, { conditions: [budget] }), { budget }), false);
  });

  it('the status throttle requeues an agent for changed numbers only every few minutes', () => {
    let time = 0;
    const throttle = new StatusThrottle({ ...systemClock, monotonic: () => time });
    const results = [];
    for (time = 0; time <= 600_000; time += 10_000)
      results.push(throttle.isChanged(anAgent({}, { queue: 1 }), { queue: 2 }));
    assert.equal(results.filter(Boolean).length, 3);
    assert.equal(throttle.isChanged(anAgent({}, { queue: 2 }), { queue: 2 }), false);
  });

  it('the status throttle does not requeue an agent for the health of a model that the policy denies', () => {
    const denied = { conditions: [{ type: 'ModelAvailable', reason: 'ModelDenied', message: 'no' }] };
    const model = { type: 'ModelAvailable', status: 'False', reason: 'ModelUnavailable', message: 'm' } as const;
    assert.equal(new StatusThrottle(systemClock).isChanged(anAgent({}, denied), { model }), false);
  });
});
