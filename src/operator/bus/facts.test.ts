import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Account, countsOf, openAccount, rollAccount } from '../../ledger/account.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ProviderHealth } from '../../nats/model-health.ts';
import { News } from '../agent/news.ts';
import type { StoredAgent, StoredPolicy } from '../kube-types.ts';
import { budgetProblem, budgetSummary } from './budget.ts';
import { modelProblem, Providers } from './models.ts';

const NOW = new Date('2031-05-05T10:20:00Z');

function anAgent(spec: object, status: object = {}): StoredAgent {
  const metadata = { name: 'analyst', namespace: 'team-a', uid: 'u' };
  return { metadata, spec: { model: { primary: 'openai/a' }, ...spec }, status } as unknown as StoredAgent;
}

const policy = (quotas: object) => ({ metadata: { name: 'standard' }, spec: { quotas } }) as unknown as StoredPolicy;

function spent(inputTokens: number, costMicros = 0): { spent: Account; charged: Account } {
  const account = openAccount();
  rollAccount(account, NOW.getTime());
  for (const window of ['hour', 'day', 'month'] as const)
    account[window].counts = countsOf({ inputTokens, costMicros });
  return { spent: account, charged: account };
}

describe('the budget of an agent', () => {
  const problem = (quotas: object, own: number, shared: object = {}, all = 0, money = 0) =>
    budgetProblem(
      anAgent({ quotas }),
      policy(shared),
      { own: spent(own, money), policy: spent(all, money) },
      NOW.getTime(),
    );

  it('is used up when one more answer would not fit, and says by which quota, until when', () => {
    assert.equal(problem({ tokensPerHour: 100_000 }, 95_000), undefined);
    const { reason, message = '' } = problem({ tokensPerHour: 100_000 }, 96_000) ?? {};
    assert.equal(reason, 'TokenQuotaExceeded');
    assert.match(
      message,
      /^of the 100,000 tokens that spec\.quotas\.tokensPerHour allows, .* resumes 2031-05-05T11:00Z/,
    );
  });

  it('says the same while more is spent, so that nothing is written', () => {
    assert.deepEqual(problem({ tokensPerHour: 100_000 }, 96_000), problem({ tokensPerHour: 100_000 }, 99_000));
  });

  it('names the quota that opens last, that of the policy too', () => {
    const found = problem({ tokensPerHour: 100 }, 100, { costPerMonth: '2.00' }, 100, 2_000_000);
    assert.equal(found?.reason, 'CostQuotaExceeded');
    assert.match(
      found.message,
      /2 dollars that TrustPolicy "standard" spec\.quotas\.costPerMonth .* 2031-06-01T00:00Z/,
    );
  });

  it('is one line about the quota used most', () => {
    const quotas = { tokensPerHour: 100_000, tokensPerDay: 2_000_000, costPerDay: '2.00' };
    assert.equal(budgetSummary(anAgent({ quotas }), { own: spent(11_400), policy: undefined }), '11% of 100k tok/h');
    assert.equal(budgetSummary(anAgent({ quotas }), { own: spent(0, 900_000), policy: undefined }), '45% of 2 $/d');
    assert.equal(budgetSummary(anAgent({}), { own: spent(5), policy: undefined }), undefined);
  });
});

describe('the models of an agent', () => {
  const health = (provider: string, state: ProviderHealth['state'], age = 60_000): ProviderHealth => ({
    provider,
    state,
    since: new Date(NOW.getTime() - age).toISOString(),
    names: [`default/${provider}`],
  });
  const problem = (model: object, ...states: ProviderHealth[]) => {
    const providers = new Providers();
    providers.learn(states, NOW);
    return modelProblem(anAgent({ model }), providers);
  };

  it('are well while nothing is known', () => {
    assert.equal(problem({ primary: 'openai/a' }), undefined);
    assert.equal(problem({ primary: 'openai/a' }, health('openai', 'Available')), undefined);
  });

  it('fail with their provider, by whatever name, and say whose key is refused', () => {
    for (const primary of ['openai/a', 'default/openai']) {
      assert.equal(problem({ primary }, health('openai', 'Unavailable'))?.reason, 'ModelUnavailable');
    }
    const refused = problem({ primary: 'openai/a' }, health('openai', 'Unauthorized'));
    assert.deepEqual([refused?.status, refused?.reason], ['False', 'ModelUnauthorized']);
    assert.match(refused?.message ?? '', /provider "openai" refuses the key since 2031-05-05T10:19Z.*rotate its key/);
  });

  it('are available while a fallback is', () => {
    const model = { primary: 'openai/a', fallbacks: ['anthropic/b'] };
    const found = problem(model, health('openai', 'Unavailable'), health('anthropic', 'Available'));
    assert.deepEqual([found?.status, found?.reason], ['True', 'FallbackInUse']);
    const both = problem(model, health('openai', 'Unavailable'), health('anthropic', 'Unauthorized'));
    assert.deepEqual([both?.status, both?.reason], ['False', 'ModelUnavailable']);
  });

  it('do not follow a state that has not lasted', () => {
    assert.equal(problem({ primary: 'openai/a' }, health('openai', 'Unavailable', 5_000)), undefined);
    const providers = new Providers();
    providers.learn([health('openai', 'Unavailable')], NOW);
    providers.learn([health('openai', 'Available', 5_000)], NOW);
    assert.equal(providers.problemOf('openai/a')?.state, 'Unavailable');
    providers.learn([health('openai', 'Available')], NOW);
    assert.equal(providers.problemOf('openai/a'), undefined);
  });
});

describe('news of an agent', () => {
  const budget = { type: 'BudgetAvailable', status: 'False', reason: 'TokenQuotaExceeded', message: 'm' } as const;

  it('is a condition its status does not show', () => {
    const news = new News(systemClock);
    assert.equal(news.isNews(anAgent({}), {}), false);
    assert.equal(news.isNews(anAgent({}), { budget }), true);
    assert.equal(news.isNews(anAgent({}, { conditions: [budget] }), { budget }), false);
  });

  it('is a number that moved, every few minutes', () => {
    let time = 0;
    const news = new News({ ...systemClock, monotonic: () => time });
    const told = [];
    for (time = 0; time <= 600_000; time += 10_000) told.push(news.isNews(anAgent({}, { queue: 1 }), { queue: 2 }));
    assert.equal(told.filter(Boolean).length, 3);
    assert.equal(news.isNews(anAgent({}, { queue: 2 }), { queue: 2 }), false);
  });

  it('is not how a model does that the policy denies', () => {
    const denied = { conditions: [{ type: 'ModelAvailable', reason: 'ModelDenied', message: 'no' }] };
    const model = { type: 'ModelAvailable', status: 'False', reason: 'ModelUnavailable', message: 'm' } as const;
    assert.equal(new News(systemClock).isNews(anAgent({}, denied), { model }), false);
  });
});
