import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';
import { effectiveLevels } from './effective.ts';
import { evaluateTrust } from './evaluate.ts';
import { aTrustInput, BINDING, foldedFor, manyTasks } from './trust.testing.ts';

type Strategy = NonNullable<TrustPolicySpec['strategy']>;

const NONE = { minTasks: 1, minRatings: 0 };
const WEB = aTool({ name: 'web_page', category: 'web' });
const FILE = aTool();

/** The decisions after rated tasks of category web, at the levels that the strategy gives the agent. */
function decisionsUnder(strategy: Strategy | undefined, requests: readonly PolicyRequest[]): string[] {
  const level = { initial: 'sandboxed', ceiling: 'restricted' } as const;
  const policy: TrustPolicySpec = { level, ...(strategy === undefined ? {} : { strategy }) };
  const evidence = foldedFor(manyTasks(100, { rating: 10, categories: ['web'] }));
  const { trust } = evaluateTrust({ ...aTrustInput(policy), evidence });
  const levels = effectiveLevels(trust, BINDING, policy);
  const snapshot = { ...aSnapshot({ policy, level: levels.level }), categoryLevels: levels.categories };
  const decider = createDecider(snapshot);
  return requests.map((request) => {
    const { effect, rule } = decider.decide(request);
    return effect === 'Allow' ? effect : `${effect} by ${rule}`;
  });
}

describe('the strategies decide calls', () => {
  const refused = ['Deny by level.category'];

  it('strategy Disabled: a web tool stays refused at the initial level', () => {
    assert.deepEqual(decisionsUnder({ type: 'Disabled' }, [WEB]), refused);
    assert.deepEqual(decisionsUnder(undefined, [WEB]), refused);
  });

  it('strategies Weighted and Milestone: the one level that the agent earned decides about every category', () => {
    for (const type of ['Weighted', 'Milestone'] as const) {
      const milestone = type === 'Milestone' ? { milestone: { minQuality: 9 } } : {};
      assert.deepEqual(decisionsUnder({ type, ...NONE, ...milestone }, [WEB, FILE]), ['Allow', 'Allow'], type);
      assert.deepEqual(decisionsUnder({ type, ...NONE, minTasks: 101, ...milestone }, [WEB]), refused, type);
    }
  });

  it('strategy PerCategory: a tool is allowed at the earned level of its category, and refused at that of another', () => {
    const strategy = (category: 'web' | 'file_system'): Strategy => ({
      type: 'PerCategory',
      ...NONE,
      categories: [{ category }],
    });
    assert.deepEqual(decisionsUnder(strategy('web'), [WEB]), ['Allow']);
    assert.deepEqual(decisionsUnder(strategy('file_system'), [WEB]), refused);
  });

  it('strategy PerCategory: the initial level of a category decides before any task', () => {
    const database = aTool({ name: 'db_query', category: 'database', action: 'db:query' });
    const categories = [{ category: 'web' as const, initial: 'restricted', minTasks: 500 }];
    const strategy: Strategy = { type: 'PerCategory', ...NONE, categories };
    assert.deepEqual(decisionsUnder(strategy, [WEB, FILE, database]), ['Allow', 'Allow', 'Deny by level.category']);
  });

  it('strategy PerCategory: forging follows category code_execution, and not web', () => {
    const sandbox: PolicyRequest = { kind: 'Forge', mode: 'Sandbox', apis: [], domains: [], paths: [] };
    const under = (category: 'web' | 'code_execution'): string | undefined => {
      const policy: TrustPolicySpec = { level: { initial: 'sandboxed', ceiling: 'restricted' } };
      const agent = { forge: { enabled: true, modes: ['Compose' as const, 'Sandbox' as const] } };
      const snapshot = aSnapshot({ policy, agent, level: 'sandboxed' });
      const categoryLevels = { [category]: 'restricted' };
      return createDecider({ ...snapshot, categoryLevels }).decide(sandbox).effect;
    };
    assert.equal(under('code_execution'), 'Allow');
    assert.equal(under('web'), 'Deny');
  });
});
