import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kstatusOf } from '../../test/support/kstatus.ts';
import { DEFINITIONS } from '../api/generate/definitions.ts';
import { aPod, aPolicy, anAgent, anObservation, statusOf } from './agent/observed.testing.ts';
import type { ApplyResult } from './agent/apply.ts';
import type { ObservedAgent } from './agent/observed.ts';
import { conditionEvents } from './conditions.ts';
import { policyStatus } from './policy/plan.ts';

const pod = aPod('u-pod', { name: 'p' });
const RUNNING: Partial<ObservedAgent> = {
  bound: pod,
  pods: [pod],
  agent: anAgent({}, { pod: { name: 'p', uid: 'u-pod' } }),
};
const starting = aPod('u-pod', { name: 'p', status: { phase: 'Pending' } });
const REFUSED = { kind: 'refused', message: 'm' } as const;

const isProgress = ({ type }: { type: string }) => type === 'Reconciling' || type === 'Stalled';

interface StatusCase {
  readonly what: string;
  readonly observed: Partial<ObservedAgent>;
  readonly applied?: ApplyResult;
  readonly expected: ReturnType<typeof kstatusOf>;
}

const CASES: readonly StatusCase[] = [
  { what: 'that runs', observed: RUNNING, expected: 'Current' },
  { what: 'that is suspended', observed: { agent: anAgent({ suspend: true }) }, expected: 'Current' },
  { what: 'whose pod is created', observed: {}, expected: 'InProgress' },
  { what: 'whose pod starts', observed: { ...RUNNING, bound: starting, pods: [starting] }, expected: 'InProgress' },
  { what: 'without its policy', observed: { policy: undefined }, expected: 'InProgress' },
  {
    what: 'without admission policies',
    observed: { protection: { kind: 'notEnforced', message: 'm', isLasting: true } },
    expected: 'InProgress',
  },
  {
    what: 'whose pod is rejected',
    observed: {},
    applied: { ...REFUSED, reason: 'PodRejected' },
    expected: 'InProgress',
  },
  { what: 'with an invalid spec', observed: { specError: 'e' }, expected: 'Failed' },
  { what: 'with a policy that is invalid', observed: { policyError: 'e' }, expected: 'Failed' },
  { what: 'with a denied grant', observed: { grantError: 'e' }, expected: 'Failed' },
  {
    what: 'beyond the quota of its policy',
    observed: { policy: aPolicy({ quotas: { agents: 1 } }), rank: { older: 1, all: 2 } },
    expected: 'Failed',
  },
  {
    what: 'whose pod name is taken',
    observed: {},
    applied: { ...REFUSED, reason: 'PodNameConflict' },
    expected: 'Failed',
  },
];

describe('the status of an agent, as kstatus reads it', () => {
  for (const { what, observed, applied, expected } of CASES) {
    it(`an agent ${what} is ${expected}`, () => {
      const { metadata } = anAgent();
      const status = statusOf(anObservation(observed), applied);
      assert.equal(kstatusOf({ metadata, status }), expected);
      assert.equal(kstatusOf({ metadata: { ...metadata, generation: metadata.generation + 1 }, status }), 'InProgress');
    });

    it(`an agent ${what} leaves no condition of progress behind, and these conditions are no Events`, () => {
      const before = statusOf(anObservation(observed), applied);
      const agent = anAgent({}, { ...before, pod: { name: 'p', uid: 'u-pod' } });
      const after = statusOf(anObservation({ ...RUNNING, agent }));
      assert.equal(kstatusOf({ metadata: agent.metadata, status: after }), 'Current');
      assert.ok(!(after.conditions ?? []).some(isProgress));
      const conditions = before.conditions ?? [];
      const withoutProgress = conditions.filter((condition) => !isProgress(condition));
      assert.deepEqual(
        conditionEvents(undefined, conditions, 'Ready'),
        conditionEvents(undefined, withoutProgress, 'Ready'),
      );
      assert.deepEqual(
        conditionEvents(conditions, after.conditions ?? [], 'Ready'),
        conditionEvents(withoutProgress, after.conditions ?? [], 'Ready'),
      );
    });
  }

  for (const kind of ['Agent', 'TrustPolicy'] as const) {
    it(`a new ${kind} is in progress before the operator writes its status, for every version of kstatus`, () => {
      const defaultStatus = DEFINITIONS.find((definition) => definition.kind === kind)?.defaultStatus;
      assert.ok(defaultStatus !== undefined);
      const object = { metadata: { generation: 1 }, status: defaultStatus };
      assert.equal(kstatusOf(object), 'InProgress');
      assert.equal(kstatusOf(object, false), 'InProgress');
    });
  }
});

describe('the status of a policy, as kstatus reads it', () => {
  for (const [specError, expected] of [
    [undefined, 'Current'],
    ['spec.quotas.cpu: no quantity; write 500m', 'Failed'],
  ] as const) {
    it(`a policy ${specError === undefined ? 'in force' : 'with an invalid spec'} is ${expected}`, () => {
      const policy = aPolicy();
      const now = new Date('2031-05-05T11:00:30Z');
      const status = policyStatus({ policy, agents: 0, specError, spend: undefined, now });
      assert.equal(kstatusOf({ metadata: policy.metadata, status }), expected);
    });
  }
});
