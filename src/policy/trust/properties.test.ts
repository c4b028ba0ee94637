import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { BUILTIN_LEVELS } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import type { TrustStatus } from '../../api/v1alpha1/trust/status.ts';
import { effectiveLevels } from './effective.ts';
import { evaluateTrust } from './evaluate.ts';
import { foldEvidence, type TaskRecord } from './evidence.ts';
import { levelRank } from './ladder.ts';
import { trustScore } from './score.ts';
import { aTrustInput, BINDING, DAY_MS, foldedFor, NOW } from './trust.testing.ts';

const RUNS = { numRuns: 2_000, seed: 20_261_122 };
const level = fc.constantFrom(...BUILTIN_LEVELS);
const category = fc.constantFrom('web' as const, 'file_system' as const);

const task: fc.Arbitrary<TaskRecord> = fc
  .record({
    daysAgo: fc.integer({ min: 0, max: 100 }),
    outcome: fc.constantFrom('completed' as const, 'completed' as const, 'failed' as const, 'excused' as const),
    deliveries: fc.integer({ min: 1, max: 5 }),
    rating: fc.option(fc.integer({ min: 0, max: 10 }), { nil: undefined }),
    categories: fc.array(category, { maxLength: 2 }),
  })
  .map(({ daysAgo, rating, ...rest }) => ({
    ...rest,
    endedAt: NOW.getTime() - daysAgo * DAY_MS,
    ...(rating === undefined ? {} : { rating }),
  }));
const tasks = fc.array(task, { maxLength: 40 });

const strategy = fc.constantFrom<TrustPolicySpec['strategy']>(
  undefined,
  { type: 'Disabled' },
  {
    type: 'Weighted',
    minTasks: 3,
    minRatings: 1,
    weighted: { thresholds: { restricted: 10, standard: 20, elevated: 30 } },
  },
  { type: 'Milestone', minRatings: 0, milestone: { minTasks: 2 }, requireHuman: ['standard'] },
  { type: 'PerCategory', minTasks: 1, minRatings: 0, categories: [{ category: 'web', initial: 'sandboxed' }] },
);
const decay = fc.constantFrom<TrustPolicySpec['decay']>(
  undefined,
  { idle: '240h' },
  { maxErrorPercent: 5 },
  { reverifyEvery: '720h', minQuality: 6 },
);
const policy: fc.Arbitrary<TrustPolicySpec> = fc
  .record({ initial: level, ceiling: level, strategy, decay })
  .map(({ initial, ceiling, ...rest }) => ({
    level: { initial, ceiling },
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
  }));

const time = fc.integer({ min: 0, max: 100 }).map((days) => new Date(NOW.getTime() - days * DAY_MS).toISOString());
const trust: fc.Arbitrary<TrustStatus | undefined> = fc.option(
  fc.record(
    {
      agentUid: fc.constantFrom(BINDING.agentUid, 'other'),
      agentGeneration: fc.constantFrom(1, 2),
      policyUid: fc.constantFrom(BINDING.policyUid, 'other'),
      policyGeneration: fc.constantFrom(1, 2),
      level,
      loweredAt: time,
      verifiedAt: time,
      approved: fc.array(fc.record({ level, approval: fc.constant('a'), since: time }), { maxLength: 1 }),
    },
    { requiredKeys: ['agentUid', 'agentGeneration', 'policyUid', 'policyGeneration'], noNullPrototype: true },
  ) as fc.Arbitrary<TrustStatus>,
  { nil: undefined },
);

const rank = (name: string, of: TrustPolicySpec): number => levelRank(name, of) ?? Number.NaN;
const levelsOf = (of: TrustStatus | undefined, spec: TrustPolicySpec) => {
  const { level: common, categories } = effectiveLevels(of, BINDING, spec);
  return [common, ...Object.values(categories)].map((name) => rank(name, spec));
};

describe('trust, over random policies, statuses and records', () => {
  it('no level is above the ceiling, before an evaluation or after it', () => {
    fc.assert(
      fc.property(policy, trust, tasks, fc.boolean(), (spec, before, records, isApproved) => {
        const approvalOf = () => (isApproved ? 'yes' : undefined);
        const evidence = foldedFor(records, before);
        const { trust: after } = evaluateTrust({ ...aTrustInput(spec), trust: before, evidence, approvalOf });
        const ceiling = rank(spec.level?.ceiling ?? 'standard', spec);
        for (const each of [...levelsOf(before, spec), ...levelsOf(after, spec)]) assert.ok(each <= ceiling);
      }),
      RUNS,
    );
  });

  it('without an approval no evaluation raises an agent to elevated, or to a level that an approver decides', () => {
    let raised = 0;
    fc.assert(
      fc.property(policy, trust, tasks, (spec, before, records) => {
        const evidence = foldedFor(records, before);
        const { transitions } = evaluateTrust({ ...aTrustInput(spec), trust: before, evidence });
        for (const { kind, to } of transitions) {
          if (kind !== 'Raised') continue;
          raised += 1;
          assert.notEqual(to, 'elevated');
          assert.ok(!spec.strategy?.requireHuman?.includes(to as never));
        }
      }),
      { ...RUNS, numRuns: 5_000 },
    );
    assert.ok(raised > 50, `too few relevant cases: ${raised}`);
  });

  it('an evaluation that lowers a level raises none and requests none, and each level moves by one', () => {
    let lowered = 0;
    fc.assert(
      fc.property(policy, trust, tasks, (spec, before, records) => {
        const evidence = foldedFor(records, before);
        const { transitions, requests } = evaluateTrust({ ...aTrustInput(spec), trust: before, evidence });
        const steps = transitions.filter(({ kind }) => kind !== 'Withdrawn');
        for (const { kind, from, to } of steps) {
          assert.equal(rank(to, spec) - rank(from, spec), kind === 'Lowered' ? -1 : 1);
        }
        if (!steps.some(({ kind }) => kind === 'Lowered')) return;
        lowered += 1;
        assert.ok(steps.every(({ kind }) => kind === 'Lowered'));
        assert.deepEqual(requests, []);
      }),
      { ...RUNS, numRuns: 5_000 },
    );
    assert.ok(lowered > 50, `too few relevant cases: ${lowered}`);
  });

  it('without records no level rises, and with unreadable ones no level changes but by an edit of a spec', () => {
    fc.assert(
      fc.property(policy, trust, (spec, before) => {
        const input = { ...aTrustInput(spec), trust: before };
        const without = evaluateTrust(input).transitions.map(({ kind }) => kind);
        assert.ok(!without.includes('Raised') && !without.includes('Approved'));
        const unread = evaluateTrust({ ...input, evidence: undefined }).transitions;
        assert.ok(unread.every(({ kind }) => kind === 'Withdrawn'));
      }),
      RUNS,
    );
  });

  it('an evaluation of its own result at the same time changes nothing more by decay', () => {
    fc.assert(
      fc.property(policy, trust, tasks, (spec, before, records) => {
        const first = evaluateTrust({ ...aTrustInput(spec), trust: before, evidence: foldedFor(records, before) });
        const evidence = foldedFor(records, first.trust);
        const again = evaluateTrust({ ...aTrustInput(spec), trust: first.trust, evidence });
        if (!first.transitions.some(({ kind }) => kind === 'Lowered')) return;
        assert.ok(!again.transitions.some(({ kind }) => kind === 'Lowered' || kind === 'Raised'));
      }),
      RUNS,
    );
  });

  it('one more completed task with the best rating never lowers the score, and a failed one never raises it', () => {
    const marks = { countFrom: 0, checkedAt: 0 };
    const scoreOf = (records: readonly TaskRecord[]): number =>
      trustScore(foldEvidence(records, marks).total, {}).score;
    const one = { endedAt: NOW.getTime(), deliveries: 1, categories: [] };
    fc.assert(
      fc.property(tasks, (records) => {
        const before = scoreOf(records);
        assert.ok(scoreOf([...records, { ...one, outcome: 'completed', rating: 10 }]) >= before);
        assert.ok(scoreOf([...records, { ...one, deliveries: 5, outcome: 'failed' }]) <= before);
      }),
      RUNS,
    );
  });

  it('the order of the records does not matter', () => {
    fc.assert(
      fc.property(tasks, (records) => {
        const marks = { countFrom: NOW.getTime() - 50 * DAY_MS, checkedAt: NOW.getTime() - 10 * DAY_MS };
        assert.deepEqual(foldEvidence(records.toReversed(), marks), foldEvidence(records, marks));
      }),
      RUNS,
    );
  });
});
