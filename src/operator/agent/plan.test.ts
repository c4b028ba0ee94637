import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { isKnownReason } from '../conditions.testing.ts';
import type { ApplyResult } from './apply.ts';
import type { ObservedAgent } from './observed.ts';
import { plan } from './plan.ts';
import { NOW, READY, aPod, aPolicy, anAgent, anObservation, statusOf } from './observed.testing.ts';
import { statusDiffers, statusPatch } from './summarize.ts';

const BOUND = { pod: { name: 'p', uid: 'u-pod' } };

function condition(observed: ObservedAgent, type: string, applied?: ApplyResult) {
  return statusOf(observed, applied).conditions?.find((one) => one.type === type);
}

const running = (status: object, spec: object = {}): Partial<ObservedAgent> => {
  const pod = aPod('u-pod', { name: 'p', status });
  return { agent: anAgent(spec, BOUND), bound: pod, pods: [pod] };
};

const waiting = (container: object) => ({ phase: 'Pending', containerStatuses: [{ name: 'agent', ...container }] });

interface FaultCase {
  readonly what: string;
  readonly observed: Partial<ObservedAgent>;
  readonly applied?: ApplyResult;
  readonly type?: string;
  readonly status?: string;
  readonly reason: string;
  readonly message: RegExp;
}

const FAULT_CASES: readonly FaultCase[] = [
  {
    what: 'the policy is missing',
    observed: { policy: undefined },
    reason: 'TrustPolicyNotFound',
    message: /^TrustPolicy "standard" does not exist in namespace "team-a"; create it or change spec\.trustPolicyRef$/,
  },
  {
    what: 'the spec is invalid',
    observed: { specError: 'spec.quotas.costPerDay: no decimal; write "2.00"' },
    reason: 'InvalidSpec',
    message: /^spec\.quotas\.costPerDay: /,
  },
  {
    what: 'the policy is invalid',
    observed: { policyError: 'spec.levels[0]: unknown base; name one' },
    reason: 'InvalidSpec',
    message: /^TrustPolicy "standard" cannot be used: spec\.levels/,
  },
  {
    what: 'a grant exceeds the policy',
    observed: { grantError: 'grants.network "*" exceeds policy "standard" (egress.allow is empty); narrow it' },
    reason: 'GrantDenied',
    message: /^grants\.network "\*" exceeds/,
  },
  {
    what: 'the agent quota of the policy is exhausted',
    observed: { policy: aPolicy({ quotas: { agents: 20 } }), rank: { older: 20, all: 21 } },
    reason: 'AgentQuotaExceeded',
    message:
      /^21 agents exist, TrustPolicy "standard" allows 20, and older agents have precedence; delete one or raise/,
  },
  {
    what: 'no node fits',
    observed: running({
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes: cpu' }],
    }),
    reason: 'Unschedulable',
    message: /^pod "p" fits no node: 0\/3 nodes: cpu; add capacity or lower spec\.sandbox\.resources$/,
  },
  {
    what: 'the image cannot be pulled',
    observed: running(waiting({ state: { waiting: { reason: 'ImagePullBackOff', message: 'no such tag' } } })),
    reason: 'ImagePullFailed',
    message: /container "agent": no such tag; correct the image/,
  },
  {
    what: 'the pod waits for a missing object',
    observed: {
      ...running(waiting({ state: { waiting: { reason: 'ContainerCreating' } } })),
      delay: 'FailedMount: configmap "orders" not found',
    },
    reason: 'Starting',
    message: /^pod "p" does not start: FailedMount: configmap "orders" not found; fix the cause$/,
  },
  {
    what: 'its node does not respond',
    observed: running({
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: ['agent', 'sandbox'].map((name) => ({ name, ready: true, state: { running: {} } })),
    }),
    reason: 'NodeNotReady',
    message: /^node "unknown" of pod "p" does not respond; a new pod is created .*; see kubectl describe node unknown$/,
  },
  {
    what: 'a container crashes repeatedly',
    observed: running(
      waiting({
        restartCount: 4,
        state: { waiting: { reason: 'CrashLoopBackOff' } },
        lastState: { terminated: { exitCode: 1, message: 'TEMPER_BUS_UNAUTHORIZED\u001b[2J the key' } },
      }),
    ),
    reason: 'PodCrashLooping',
    message:
      /container "agent" exited 1 4 times, last: TEMPER_BUS_UNAUTHORIZED\\u\{1b\}\[2J the key; see kubectl logs p/,
  },
  {
    what: 'several pods end in succession',
    observed: {
      agent: anAgent({}, BOUND),
      failures: { count: 3, retryAt: new Date('2026-05-04T12:00:20Z'), message: '3 pods failed recently' },
    },
    reason: 'PodCrashLooping',
    message:
      /^3 pods failed recently; the next pod is created at 12:00:20 UTC; see kubectl get events --namespace \S+$/,
  },
  {
    what: 'admission rejects the pod',
    observed: {},
    applied: { kind: 'refused', reason: 'PodRejected', message: 'the API server refused pod "p" (403 Forbidden): …' },
    reason: 'PodRejected',
    message: /refused pod "p" \(403/,
  },
  {
    what: 'another pod has the same name',
    observed: {},
    applied: {
      kind: 'refused',
      reason: 'PodNameConflict',
      message: 'pod "p" exists and does not belong to the operator',
    },
    reason: 'PodNameConflict',
    message: /exists and does not belong/,
  },
  {
    what: 'the admission policies are missing',
    observed: {
      protection: {
        kind: 'notEnforced',
        message: 'ValidatingAdmissionPolicy "temper-namespace-protection" does not exist',
        isLasting: false,
      },
    },
    reason: 'AdmissionPolicyMissing',
    message: /temper-namespace-protection/,
  },
  {
    what: 'NATS is unreachable for a while',
    observed: { ...running(READY), natsUnavailableSince: new Date('2026-05-04T11:50:00Z'), pending: 3 },
    reason: 'BusUnavailable',
    message: /^NATS unreachable since 2026-05-04T11:50Z; 3 messages wait/,
  },
  {
    what: 'the agent is suspended',
    observed: { agent: anAgent({ suspend: true }) },
    type: 'Active',
    reason: 'Suspended',
    message: /^suspended by spec\.suspend/,
  },
  {
    what: 'the kill switch is on',
    observed: { policy: aPolicy({ suspend: true }) },
    type: 'Active',
    reason: 'Suspended',
    message: /kill switch of TrustPolicy "standard"/,
  },
  {
    what: 'no model is allowed',
    observed: { modelError: 'model.primary "a/b" exceeds policy "standard"' },
    type: 'ModelAvailable',
    reason: 'ModelDenied',
    message: /model\.primary/,
  },
  {
    what: 'the provider rejects the key of the model',
    observed: {
      runtimeState: {
        model: {
          type: 'ModelAvailable',
          status: 'False',
          reason: 'ModelUnauthorized',
          message: 'provider "a" answered 401',
        },
      },
    },
    type: 'ModelAvailable',
    reason: 'ModelUnauthorized',
    message: /answered 401/,
  },
  {
    what: 'a quota is exhausted',
    observed: {
      runtimeState: {
        budget: {
          type: 'BudgetAvailable',
          status: 'False',
          reason: 'TokenQuotaExceeded',
          message: '100 of 100 tokens',
        },
      },
    },
    type: 'BudgetAvailable',
    reason: 'TokenQuotaExceeded',
    message: /100 of 100/,
  },
  {
    what: 'the namespace is not protected',
    observed: { protection: { kind: 'notProtected' } },
    type: 'Protected',
    reason: 'NamespaceNotProtected',
    message: /label the namespace temper\.dev\/agents=true/,
  },
];

describe('plan and summarize', () => {
  for (const { what, observed, applied, type = 'Ready', status = 'False', reason, message } of FAULT_CASES) {
    it(`plan and summarize set reason ${reason} of condition ${type} when ${what}`, () => {
      const found = condition(anObservation(observed), type, applied);
      assert.deepEqual([found?.status, found?.reason], [status, reason]);
      assert.match(found?.message ?? '', message);
      assert.ok(isKnownReason('Agent', type, reason));
    });
  }

  it('plan and summarize keep a suspended agent Ready without a pod', () => {
    const observed = anObservation({ ...running(READY, { suspend: true }) });
    assert.deepEqual(
      plan(observed).remove.map(({ metadata }) => metadata.uid),
      ['u-pod'],
    );
    assert.equal(condition(observed, 'Ready')?.status, 'True');
    assert.equal(statusOf(observed).pod, undefined);
  });

  it('plan and summarize create a pod whose name depends on the agent and its previous pod', () => {
    const first = plan(anObservation()).step;
    const again = plan(anObservation({ agent: anAgent({}, { pod: { name: 'p', uid: 'u-gone' } }) })).step;
    assert.deepEqual([first.kind, again.kind], ['create', 'create']);
    assert.ok(first.kind === 'create' && again.kind === 'create' && first.name !== again.name);
  });

  it('plan and summarize replace a pod only when its template changed', () => {
    const old = aPod('u-pod', { name: 'p', digest: 'sha256:bb' });
    const changed = plan(anObservation({ agent: anAgent({}, BOUND), bound: old, pods: [old] }));
    assert.deepEqual([changed.step.kind, changed.remove], ['create', [old]]);
    const same = plan(anObservation(running(READY)));
    assert.deepEqual([same.step.kind, same.remove], ['keep', []]);
  });

  it('plan and summarize delete other pods of the agent besides the bound one, and no terminating pod', () => {
    const [bound, other, ending] = [
      aPod('u-pod', { name: 'p' }),
      aPod('u-2', { name: 'p2' }),
      aPod('u-3', { name: 'p3', terminating: true }),
    ];
    const { step, remove } = plan(anObservation({ agent: anAgent({}, BOUND), bound, pods: [bound, other, ending] }));
    assert.deepEqual([step.kind, remove], ['keep', [other]]);
  });

  it('plan and summarize replace a pod that two agents are bound to', () => {
    const { step, remove } = plan(anObservation({ ...running(READY), hasBindingConflict: true }));
    assert.equal(step.kind, 'create');
    assert.equal(remove.length, 1);
  });

  it('plan and summarize keep a running pod and create no pod while the admission policies are missing', () => {
    const protection = { kind: 'notEnforced', message: 'gone', isLasting: true } as const;
    assert.equal(plan(anObservation({ ...running(READY), protection })).step.kind, 'keep');
    assert.equal(plan(anObservation({ protection })).step.kind, 'none');
  });

  it('plan and summarize prefer an own pod over a warm pod, and a warm pod over a new one', () => {
    const warm = aPod('u-warm', { name: 'warm-standard-x' });
    assert.equal(plan(anObservation({ warmPod: warm })).step.kind, 'claim');
    for (const own of [aPod('u-claimed', { name: 'warm-standard-y' }), aPod('u-created')]) {
      const { step, remove } = plan(anObservation({ pods: [own], warmPod: warm }));
      assert.deepEqual([step.kind, remove], ['bind', []]);
      assert.ok(step.kind === 'bind' && step.pod === own);
    }
  });

  it('plan and summarize keep one of several unconfirmed pods, the same in every order, and delete the others', () => {
    const [one, other] = [aPod('u-1', { name: 'p1' }), aPod('u-2', { name: 'p2' })];
    for (const pods of [
      [one, other],
      [other, one],
    ]) {
      const { step, remove } = plan(anObservation({ pods }));
      assert.ok(step.kind === 'bind' && step.pod === one);
      assert.deepEqual(remove, [other]);
    }
  });

  it('plan and summarize name the successor of an unconfirmed pod after that pod', () => {
    const ending = aPod('u-1', { terminating: true });
    const { step } = plan(anObservation({ boundUid: 'u-1', bound: ending, pods: [ending] }));
    assert.ok(step.kind === 'create' && step.name !== ending.metadata.name);
  });
});

describe('an agent while the chart is upgraded', () => {
  const notEnforced = { kind: 'notEnforced', message: 'belongs to another version of the chart' } as const;
  const reported = { type: 'Protected', status: 'True', reason: 'NamespaceProtected', message: 'm' };

  it('the status of a running agent reports missing admission policies only when that is lasting', () => {
    const agent = anAgent({}, { ...BOUND, conditions: [reported] });
    const during = (isLasting: boolean) =>
      condition(anObservation({ ...running(READY), agent, protection: { ...notEnforced, isLasting } }), 'Protected');
    assert.equal(during(false)?.reason, 'NamespaceProtected');
    assert.equal(during(true)?.reason, 'AdmissionPolicyMissing');
  });

  it('a new agent reports missing admission policies at once, in Ready and in Protected', () => {
    const observed = anObservation({ protection: { ...notEnforced, isLasting: false } });
    assert.equal(condition(observed, 'Ready')?.reason, 'AdmissionPolicyMissing');
    assert.equal(condition(observed, 'Protected')?.reason, 'AdmissionPolicyMissing');
  });
});

describe('an agent without messages', () => {
  const idle = { idle: { scaleToZeroAfter: '30m' } };
  const since = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);

  it('an agent without messages is scaled to zero after the idle time, stays Ready, and gets a pod for a message', () => {
    const quiet = anObservation({ ...running(READY, idle), lastActivity: since(31), pending: 0 });
    assert.deepEqual([condition(quiet, 'Ready')?.status, condition(quiet, 'Ready')?.reason], ['True', 'Idle']);
    const scaledToZero = anAgent(idle, { conditions: statusOf(quiet).conditions });
    assert.equal(plan(anObservation({ agent: scaledToZero, pending: 0 })).step.kind, 'none');
    assert.equal(plan(anObservation({ agent: scaledToZero, pending: 1 })).step.kind, 'create');
    assert.equal(plan(anObservation({ agent: scaledToZero })).step.kind, 'none');
    assert.equal(plan(anObservation({ agent: { ...scaledToZero, spec: anAgent().spec } })).step.kind, 'create');
  });

  it('an idle agent keeps the unconfirmed pod of a message until its queue is known to be empty', () => {
    const idleStatus = { conditions: [{ type: 'Ready', status: 'True', reason: 'Idle', message: 'm' }] };
    const pod = aPod('u-pod');
    const planned = [1, undefined, 0].map((pending) => {
      const { step, remove } = plan(anObservation({ agent: anAgent(idle, idleStatus), pods: [pod], pending }));
      return [step.kind, remove];
    });
    assert.deepEqual(planned, [
      ['bind', []],
      ['none', []],
      ['none', [pod]],
    ]);
  });

  it('an agent without messages keeps its pod while messages wait, while its activity is unknown, and after a recent start', () => {
    const stays = (change: Partial<ObservedAgent>) =>
      plan(anObservation({ ...running(READY, idle), ...change })).step.kind;
    assert.equal(stays({ lastActivity: since(31), pending: 1 }), 'keep');
    assert.equal(stays({ lastActivity: since(31) }), 'keep');
    assert.equal(stays({ pending: 0 }), 'keep');
    const woken = aPod('u-pod', { name: 'p' });
    const pod = { ...woken, metadata: { ...woken.metadata, creationTimestamp: '2026-05-04T11:59:00Z' } };
    assert.equal(stays({ lastActivity: since(600), pending: 0, bound: pod, pods: [pod] }), 'keep');
  });

  it('an agent without messages is requeued when its idle time may have passed', () => {
    const { requeueAfterMs } = plan(anObservation({ ...running(READY, idle), lastActivity: since(10), pending: 0 }));
    assert.equal(requeueAfterMs, 20 * 60_000);
  });
});

describe('the status of an agent', () => {
  it('the status of an agent is not written twice for the same observed state', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FAULT_CASES), (faultCase) => {
        const observed = anObservation(faultCase.observed);
        const first = statusOf(observed, faultCase.applied);
        const { metadata } = observed.agent;
        const agent = { ...observed.agent, metadata, status: first };
        const later = { ...observed, agent, now: new Date(NOW.getTime() + 5_000) };
        // An unbound agent is a different observed state.
        if (first.pod === undefined && observed.bound !== undefined) return;
        assert.equal(statusDiffers(first, statusOf(later, faultCase.applied), false), false);
      }),
    );
  });

  it('the status of an agent is patched with null for removed fields, including the node of the previous pod', () => {
    const before = { pod: { name: 'p', uid: 'u', node: 'n' }, runtime: 'standard', level: 'sandboxed' };
    assert.deepEqual(statusPatch(before, { level: 'sandboxed' }), { pod: null, runtime: null, level: 'sandboxed' });
    const after = { ...before, pod: { name: 'q', uid: 'v' } };
    assert.deepEqual(statusPatch(before, after)['pod'], { node: null, name: 'q', uid: 'v' });
  });
});
