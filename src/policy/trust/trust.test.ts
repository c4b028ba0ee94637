import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import { effectiveLevels } from './effective.ts';
import { evaluateTrust, type TrustEvaluation } from './evaluate.ts';
import type { TaskRecord } from './evidence.ts';
import { aTrustInput, BINDING, CREATED, DAY_MS, foldedFor, manyTasks, NOW } from './trust.testing.ts';

const WEIGHTED: TrustPolicySpec = { level: { initial: 'sandboxed' }, strategy: { type: 'Weighted' } };
const GOOD = manyTasks(60, { rating: 9 });

function evaluate(
  policy: TrustPolicySpec,
  records: readonly TaskRecord[],
  trust?: TrustStatus,
  now = NOW,
): TrustEvaluation {
  const evidence = foldedFor(records, trust);
  return evaluateTrust({ ...aTrustInput(policy), evidence, trust, now });
}

/** Evaluates until nothing changes, as the operator does, and returns the levels on the way. */
function climb(policy: TrustPolicySpec, records: readonly TaskRecord[]): string[] {
  const levels: string[] = [];
  let trust: TrustStatus | undefined;
  for (let round = 0; round < 6; round += 1) {
    const { trust: next, transitions } = evaluate(policy, records, trust);
    trust = next;
    levels.push(...transitions.map(({ to }) => to));
  }
  return levels;
}

const levelOf = (trust: TrustStatus | undefined, policy: TrustPolicySpec) =>
  effectiveLevels(trust, BINDING, policy).level;

describe('an agent that earns its level', () => {
  it('an agent without records keeps the initial level under every strategy, whatever its score without data would be', () => {
    const none = { minTasks: 1, minRatings: 0 };
    const policies: TrustPolicySpec[] = [
      WEIGHTED,
      { strategy: { type: 'Weighted', ...none } },
      { strategy: { type: 'Milestone', ...none, milestone: {} } },
      { strategy: { type: 'PerCategory', ...none, categories: [{ category: 'file_system' }] } },
      { strategy: { type: 'Disabled' } },
    ];
    for (const policy of policies) assert.deepEqual(evaluate(policy, []).transitions, []);
  });

  it('one perfect task raises no agent', () => {
    assert.deepEqual(evaluate(WEIGHTED, manyTasks(1, { rating: 10 })).transitions, []);
  });

  it('rated tasks raise an agent by one level per evaluation, up to the ceiling', () => {
    assert.deepEqual(climb(WEIGHTED, GOOD), ['restricted', 'standard']);
    assert.deepEqual(climb({ ...WEIGHTED, level: { initial: 'sandboxed', ceiling: 'restricted' } }, GOOD), [
      'restricted',
    ]);
  });

  it('tasks that no user rated raise no agent, because the pod alone ends them', () => {
    assert.deepEqual(climb(WEIGHTED, manyTasks(400, {})), []);
  });

  it('strategy Disabled never changes a level, and drops one that another strategy gave', () => {
    const policy: TrustPolicySpec = { level: { initial: 'restricted' }, strategy: { type: 'Disabled' } };
    assert.deepEqual(climb(policy, GOOD), []);
    const raised = { ...BINDING, level: 'standard', since: NOW.toISOString(), reason: 'earned' };
    assert.equal(evaluate({ ...policy, decay: { idle: '720h' } }, GOOD, raised).trust?.level, undefined);
  });

  it('a milestone waits for the age of the agent and for a time without failures', () => {
    const milestone = { minTasks: 5, minQuality: 7, activeFor: '168h', cleanFor: '336h' };
    const policy: TrustPolicySpec = { strategy: { type: 'Milestone', milestone } };
    const records = [
      ...manyTasks(20, { rating: 8 }),
      ...manyTasks(1, { outcome: 'failed', endedAt: NOW.getTime() - DAY_MS }),
    ];
    const early = evaluate(policy, records);
    assert.deepEqual(early.transitions, []);
    assert.equal(early.nextAt, NOW.getTime() + 13 * DAY_MS);
    const later = evaluate(policy, records, undefined, new Date(early.nextAt ?? 0));
    assert.deepEqual(
      later.transitions.map(({ to }) => to),
      ['restricted'],
    );
  });

  it('a milestone of one level replaces the common requirements field by field', () => {
    const levels = [{ level: 'standard' as const, minTasks: 100 }];
    const policy: TrustPolicySpec = {
      strategy: { type: 'Milestone', milestone: { minTasks: 5, minQuality: 7, levels } },
    };
    assert.deepEqual(climb(policy, GOOD), ['restricted']);
    assert.deepEqual(climb(policy, manyTasks(100, { rating: 9 })), ['restricted', 'standard']);
  });

  it('tasks of one tool category raise that category only', () => {
    const categories = [
      { category: 'web' as const, minTasks: 20, minQuality: 7 },
      { category: 'file_system' as const },
    ];
    const policy: TrustPolicySpec = { strategy: { type: 'PerCategory', categories } };
    const { trust } = evaluate(policy, manyTasks(40, { rating: 9, categories: ['web'] }));
    const levels = effectiveLevels(trust, BINDING, policy);
    assert.deepEqual(levels, { level: 'sandboxed', categories: { web: 'restricted', file_system: 'sandboxed' } });
  });
});

describe('level elevated', () => {
  const ELEVATED: TrustPolicySpec = {
    level: { initial: 'standard', ceiling: 'elevated' },
    strategy: { type: 'Weighted', requireHuman: ['elevated'] },
  };
  const many = manyTasks(100, { rating: 10 });

  it('a rise to elevated is requested, and happens by the approval of a user only', () => {
    const asked = evaluate(ELEVATED, many);
    assert.deepEqual(asked.requests, [{ from: 'standard', level: 'elevated' }]);
    assert.deepEqual(asked.transitions, []);
    const input = { ...aTrustInput(ELEVATED), evidence: foldedFor(many), approvalOf: () => 'yes' };
    const approved = evaluateTrust(input);
    assert.deepEqual(
      approved.transitions.map(({ kind, to }) => [kind, to]),
      [['Approved', 'elevated']],
    );
    assert.equal(levelOf(approved.trust, ELEVATED), 'elevated');
  });

  it('a policy that names no level for approvers still asks one about elevated', () => {
    const { requests } = evaluate({ ...ELEVATED, strategy: { type: 'Weighted' } }, many);
    assert.deepEqual(
      requests.map(({ level }) => level),
      ['elevated'],
    );
  });

  it('a level elevated that no approval of these versions granted counts as standard', () => {
    assert.equal(levelOf({ ...BINDING, level: 'elevated' }, ELEVATED), 'standard');
    const approved = [{ level: 'elevated', approval: 'yes', since: NOW.toISOString() }];
    for (const change of [{ agentGeneration: 9 }, { policyGeneration: 9 }, { policyUid: 'x' }, { agentUid: 'x' }]) {
      assert.equal(levelOf({ ...BINDING, approved, ...change }, ELEVATED), 'standard');
    }
  });

  it('an edit of either spec withdraws the approval, and the operator reports it', () => {
    const approved = [{ level: 'elevated', approval: 'yes', since: NOW.toISOString() }];
    const { trust, transitions } = evaluate(ELEVATED, many, { ...BINDING, agentGeneration: 0, approved });
    assert.equal(trust?.approved, undefined);
    assert.deepEqual(
      transitions.map(({ kind, from, to }) => [kind, from, to]),
      [['Withdrawn', 'elevated', 'standard']],
    );
  });
});

describe('an agent that loses its level', () => {
  const IDLE: TrustPolicySpec = { level: { initial: 'standard' }, decay: { idle: '720h' } };

  it('an agent without a task is lowered once per idle period, however often it is evaluated', () => {
    const records = manyTasks(5, { endedAt: NOW.getTime() - 31 * DAY_MS });
    const first = evaluate(IDLE, records);
    assert.deepEqual(
      first.transitions.map(({ to }) => to),
      ['restricted'],
    );
    assert.equal(first.nextAt, NOW.getTime());
    const second = evaluate(IDLE, records, first.trust);
    assert.deepEqual(second.transitions, []);
    assert.equal(second.nextAt, NOW.getTime() + 30 * DAY_MS);
    const later = evaluate(IDLE, records, second.trust, new Date(NOW.getTime() + 30 * DAY_MS));
    assert.deepEqual(
      later.transitions.map(({ to }) => to),
      ['sandboxed'],
    );
    assert.equal(levelOf(later.trust, IDLE), 'sandboxed');
  });

  it('evaluations do not count as activity: the idle time runs from the last task', () => {
    const records = manyTasks(5, { endedAt: NOW.getTime() - 29 * DAY_MS });
    const { trust, nextAt } = evaluate(IDLE, records);
    assert.equal(nextAt, NOW.getTime() + DAY_MS);
    assert.deepEqual(
      evaluate(IDLE, records, trust, new Date(nextAt ?? 0)).transitions.map(({ to }) => to),
      ['restricted'],
    );
  });

  it('a failure rate above the limit lowers the level, and too few tasks do not', () => {
    const failing = [...manyTasks(16, { rating: 9 }), ...manyTasks(4, { outcome: 'failed' })];
    const policy: TrustPolicySpec = { ...WEIGHTED, level: { initial: 'restricted' } };
    assert.deepEqual(
      evaluate(policy, failing).transitions.map(({ kind }) => kind),
      ['Lowered'],
    );
    assert.deepEqual(evaluate(policy, manyTasks(9, { outcome: 'failed' })).transitions, []);
    assert.deepEqual(evaluate({ level: { initial: 'restricted' } }, failing).transitions, []);
  });

  it('messages that failed for a cause outside the agent are no tasks', () => {
    const policy: TrustPolicySpec = { ...WEIGHTED, level: { initial: 'restricted' } };
    assert.deepEqual(evaluate(policy, manyTasks(50, { outcome: 'excused' })).transitions, []);
  });

  it('what lowers a level goes before what raises it', () => {
    const records = [
      ...manyTasks(100, { rating: 10, endedAt: NOW.getTime() - 2 * DAY_MS }),
      ...manyTasks(20, { outcome: 'failed' }),
    ];
    const { transitions, requests } = evaluate({ ...WEIGHTED, level: { initial: 'restricted' } }, records);
    assert.deepEqual(
      transitions.map(({ kind }) => kind),
      ['Lowered'],
    );
    assert.deepEqual(requests, []);
  });

  it('a lowered agent rises again after the cool-down, and only by later tasks', () => {
    const loweredAt = new Date(NOW.getTime() - 2 * 3_600_000).toISOString();
    const trust: TrustStatus = { ...BINDING, level: 'sandboxed', since: loweredAt, loweredAt };
    const policy: TrustPolicySpec = { ...WEIGHTED, decay: { coolDown: '4h' } };
    const before = manyTasks(100, { rating: 10, endedAt: NOW.getTime() - DAY_MS });
    assert.deepEqual(evaluate(policy, before, trust, new Date(NOW.getTime() + DAY_MS)).transitions, []);
    const after = [...before, ...manyTasks(60, { rating: 9, endedAt: NOW.getTime() - 1_000 })];
    const early = evaluate(policy, after, trust);
    assert.deepEqual(early.transitions, []);
    assert.equal(early.nextAt, NOW.getTime() + 2 * 3_600_000);
    assert.deepEqual(
      evaluate(policy, after, trust, new Date(early.nextAt ?? 0)).transitions.map(({ kind }) => kind),
      ['Raised'],
    );
  });

  it('a quality check lowers an agent with a low rating, and a raised one without a rating', () => {
    const decay = { reverifyEvery: '2160h', minQuality: 7 };
    const due = new Date(CREATED.getTime() + 90 * DAY_MS);
    const policy: TrustPolicySpec = { level: { initial: 'restricted' }, decay };
    const bad = evaluate(policy, manyTasks(3, { rating: 4 }), undefined, due);
    assert.deepEqual(
      bad.transitions.map(({ to }) => to),
      ['sandboxed'],
    );
    const unrated = evaluate(policy, manyTasks(3, {}), undefined, due);
    assert.deepEqual(unrated.transitions, []);
    assert.equal(unrated.trust?.verifiedAt, due.toISOString());
    const raised: TrustStatus = { ...BINDING, level: 'standard' };
    const automatic: TrustPolicySpec = { ...policy, strategy: { type: 'Weighted' } };
    assert.deepEqual(
      evaluate(automatic, [], raised, due).transitions.map(({ to }) => to),
      ['restricted'],
    );
  });
});

describe('the level that a gateway decides with', () => {
  it('a status of other versions gives the initial level, or a lower one that it records', () => {
    const policy: TrustPolicySpec = { ...WEIGHTED, level: { initial: 'restricted' } };
    const raised: TrustStatus = { ...BINDING, level: 'standard' };
    assert.equal(levelOf(raised, policy), 'standard');
    assert.equal(levelOf({ ...raised, policyGeneration: 2 }, policy), 'restricted');
    assert.equal(levelOf({ ...raised, level: 'sandboxed', agentGeneration: 2 }, policy), 'sandboxed');
    assert.equal(levelOf(undefined, policy), 'restricted');
  });

  it('a lower ceiling applies at once, before the operator has seen the policy', () => {
    const lower: TrustPolicySpec = { ...WEIGHTED, level: { initial: 'sandboxed', ceiling: 'restricted' } };
    assert.equal(levelOf({ ...BINDING, level: 'standard' }, lower), 'restricted');
  });

  it('an agent that follows the initial level follows its edits in both directions', () => {
    for (const initial of ['standard', 'sandboxed']) assert.equal(levelOf(undefined, { level: { initial } }), initial);
    const decayed: TrustStatus = { ...BINDING, policyGeneration: 0, level: 'sandboxed', loweredAt: NOW.toISOString() };
    const policy: TrustPolicySpec = { level: { initial: 'standard' }, decay: { idle: '720h' } };
    assert.equal(evaluate(policy, GOOD, decayed).trust?.level, 'sandboxed');
  });

  it('an older status without versions gives the initial level', () => {
    assert.equal(levelOf({} as TrustStatus, { level: { initial: 'restricted' } }), 'restricted');
  });
});
