import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { isKnownReason } from '../conditions.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube-types.ts';
import type { Applied } from './apply.ts';
import type { Observed } from './observed.ts';
import { plan } from './plan.ts';
import { podName } from './pod-name.ts';
import type { PodTemplate } from './pod-template.ts';
import { statusDiffers, statusPatch, summarize } from './summarize.ts';

const NOW = new Date('2026-05-04T12:00:00Z');
const TEMPLATE: PodTemplate = { className: 'standard', digest: 'sha256:aa', spec: {} };

function anAgent(spec: object = {}, status?: object): StoredAgent {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Agent',
    metadata: {
      name: 'analyst',
      namespace: 'team-a',
      uid: 'u-agent',
      resourceVersion: '1',
      generation: 2,
      creationTimestamp: '2026-05-04T08:00:00Z',
    },
    spec: { trustPolicyRef: { name: 'standard' }, model: { primary: 'a/b' }, prompt: { system: 'x' }, ...spec },
    ...(status === undefined ? {} : { status }),
  } as StoredAgent;
}

function aPolicy(spec: object = {}): StoredPolicy {
  const metadata = { ...anAgent().metadata, name: 'standard', uid: 'u-policy' };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'TrustPolicy', metadata, spec } as StoredPolicy;
}

function aPod(
  uid: string,
  change: { name?: string; status?: object; digest?: string; terminating?: boolean } = {},
): Pod {
  const { name = podName({ name: 'analyst', uid: 'u-agent' }, undefined), digest = TEMPLATE.digest } = change;
  return {
    metadata: {
      name,
      uid,
      namespace: 'team-a',
      labels: { [LABELS.agentUid]: 'u-agent' },
      annotations: { [ANNOTATIONS.template]: digest },
      creationTimestamp: '2026-05-04T09:00:00Z',
      ...(change.terminating === true ? { deletionTimestamp: '2026-05-04T11:59:00Z' } : {}),
    },
    status: change.status ?? READY,
  } as Pod;
}

const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const BOUND = { pod: { name: 'p', uid: 'u-pod' } };

function anObservation(change: Partial<Observed> = {}): Observed {
  return {
    agent: anAgent(),
    now: NOW,
    specProblem: undefined,
    policy: aPolicy(),
    policyProblem: undefined,
    grantProblem: undefined,
    modelProblem: undefined,
    rank: { older: 0, all: 1 },
    guard: { kind: 'fenced' },
    pods: [],
    bound: undefined,
    delay: undefined,
    boundTwice: false,
    template: TEMPLATE,
    warm: undefined,
    failures: { count: 0, retryAt: undefined, message: '' },
    pending: undefined,
    lastActivity: undefined,
    facts: {},
    busUnavailableSince: undefined,
    ...change,
  };
}

/** What the status says once the plan was carried out without any trouble. */
function statusOf(observed: Observed, applied?: Applied) {
  const planned = plan(observed);
  const { step } = planned;
  const pod = step.kind === 'none' || step.kind === 'create' ? undefined : step.pod;
  const done: Applied = applied ?? (pod === undefined ? { kind: 'unbound' } : { kind: 'bound', pod });
  return summarize(observed, planned, done);
}

function condition(observed: Observed, type: string, applied?: Applied) {
  return statusOf(observed, applied).conditions?.find((one) => one.type === type);
}

const running = (status: object, spec: object = {}): Partial<Observed> => {
  const pod = aPod('u-pod', { name: 'p', status });
  return { agent: anAgent(spec, BOUND), bound: pod, pods: [pod] };
};

const waiting = (container: object) => ({ phase: 'Pending', containerStatuses: [{ name: 'agent', ...container }] });

interface Fault {
  readonly what: string;
  readonly observed: Partial<Observed>;
  readonly applied?: Applied;
  readonly type?: string;
  readonly status?: string;
  readonly reason: string;
  readonly message: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    what: 'the policy is missing',
    observed: { policy: undefined },
    reason: 'TrustPolicyNotFound',
    message: /^TrustPolicy "standard" does not exist in namespace "team-a"; create it or change spec\.trustPolicyRef$/,
  },
  {
    what: 'the spec breaks a rule',
    observed: { specProblem: 'spec.quotas.costPerDay: no decimal; write "2.00"' },
    reason: 'InvalidSpec',
    message: /^spec\.quotas\.costPerDay: /,
  },
  {
    what: 'the policy breaks a rule',
    observed: { policyProblem: 'spec.levels[0]: unknown base; name one' },
    reason: 'InvalidSpec',
    message: /^TrustPolicy "standard" cannot be used: spec\.levels/,
  },
  {
    what: 'a grant goes beyond the policy',
    observed: { grantProblem: 'grants.network "*" exceeds policy "standard" (egress.allow is empty); narrow it' },
    reason: 'GrantDenied',
    message: /^grants\.network "\*" exceeds/,
  },
  {
    what: 'the policy has all its agents',
    observed: { policy: aPolicy({ quotas: { agents: 20 } }), rank: { older: 20, all: 21 } },
    reason: 'AgentQuotaExceeded',
    message: /^21 agents exist, TrustPolicy "standard" allows 20 and older ones come first; delete one or raise/,
  },
  {
    what: 'no node fits',
    observed: running({
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes: cpu' }],
    }),
    reason: 'Unschedulable',
    message: /^pod "p" fits no node: 0\/3 nodes: cpu; add room or lower spec\.sandbox\.resources$/,
  },
  {
    what: 'the image cannot be pulled',
    observed: running(waiting({ state: { waiting: { reason: 'ImagePullBackOff', message: 'no such tag' } } })),
    reason: 'ImagePullFailed',
    message: /container "agent": no such tag; correct the image/,
  },
  {
    what: 'the pod waits for what is not there',
    observed: {
      ...running(waiting({ state: { waiting: { reason: 'ContainerCreating' } } })),
      delay: 'FailedMount: configmap "orders" not found',
    },
    reason: 'Starting',
    message: /^pod "p" does not start: FailedMount: configmap "orders" not found; correct what it names$/,
  },
  {
    what: 'its node does not answer',
    observed: running({
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: ['agent', 'sandbox'].map((name) => ({ name, ready: true, state: { running: {} } })),
    }),
    reason: 'NodeNotReady',
    message: /^node "unknown" of pod "p" does not answer; the next pod is made .*; see kubectl describe node unknown$/,
  },
  {
    what: 'a container crashes again and again',
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
    what: 'pods end one after the other',
    observed: {
      agent: anAgent({}, BOUND),
      failures: { count: 3, retryAt: new Date('2026-05-04T12:00:20Z'), message: 'its pods ended 3 times of late' },
    },
    reason: 'PodCrashLooping',
    message:
      /^its pods ended 3 times of late; the next pod is made at 12:00:20 UTC; see kubectl get events --namespace \S+$/,
  },
  {
    what: 'admission refuses the pod',
    observed: {},
    applied: { kind: 'refused', reason: 'PodRejected', message: 'the API server refused pod "p" (403 Forbidden): …' },
    reason: 'PodRejected',
    message: /refused pod "p" \(403/,
  },
  {
    what: 'the name of the pod is taken',
    observed: {},
    applied: { kind: 'refused', reason: 'PodNameTaken', message: 'pod "p" exists and is not the operator\'s' },
    reason: 'PodNameTaken',
    message: /exists and is not/,
  },
  {
    what: 'the guard is missing',
    observed: { guard: { kind: 'missing', message: 'ValidatingAdmissionPolicy "temper-fence" does not exist' } },
    reason: 'GuardMissing',
    message: /temper-fence/,
  },
  {
    what: 'the bus is away for a while',
    observed: { ...running(READY), busUnavailableSince: new Date('2026-05-04T11:50:00Z'), pending: 3 },
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
    observed: { modelProblem: 'model.primary "a/b" exceeds policy "standard"' },
    type: 'ModelAvailable',
    reason: 'ModelDenied',
    message: /model\.primary/,
  },
  {
    what: 'the key of the model is refused',
    observed: {
      facts: {
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
    what: 'the budget is spent',
    observed: {
      facts: {
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
    what: 'the namespace is not fenced',
    observed: { guard: { kind: 'notFenced' } },
    type: 'Fenced',
    reason: 'NamespaceNotFenced',
    message: /label the namespace temper\.dev\/agents=true/,
  },
];

describe('the plan for an agent', () => {
  for (const { what, observed, applied, type = 'Ready', status = 'False', reason, message } of FAULTS) {
    it(`says ${reason} of ${type} when ${what}`, () => {
      const found = condition(anObservation(observed), type, applied);
      assert.deepEqual([found?.status, found?.reason], [status, reason]);
      assert.match(found?.message ?? '', message);
      assert.ok(isKnownReason('Agent', type, reason));
    });
  }

  it('stays Ready while it is suspended, with no pod', () => {
    const observed = anObservation({ ...running(READY, { suspend: true }) });
    assert.deepEqual(
      plan(observed).remove.map(({ metadata }) => metadata.uid),
      ['u-pod'],
    );
    assert.equal(condition(observed, 'Ready')?.status, 'True');
    assert.equal(statusOf(observed).pod, undefined);
  });

  it('makes one pod whose name follows from the agent and the pod before it', () => {
    const first = plan(anObservation()).step;
    const again = plan(anObservation({ agent: anAgent({}, { pod: { name: 'p', uid: 'u-gone' } }) })).step;
    assert.deepEqual([first.kind, again.kind], ['create', 'create']);
    assert.ok(first.kind === 'create' && again.kind === 'create' && first.name !== again.name);
  });

  it('replaces a pod only when what it is made from has changed', () => {
    const old = aPod('u-pod', { name: 'p', digest: 'sha256:bb' });
    const changed = plan(anObservation({ agent: anAgent({}, BOUND), bound: old, pods: [old] }));
    assert.deepEqual([changed.step.kind, changed.remove], ['create', [old]]);
    const same = plan(anObservation(running(READY)));
    assert.deepEqual([same.step.kind, same.remove], ['keep', []]);
  });

  it('removes pods of its own beside the one it is bound to, and no pod twice', () => {
    const [bound, other, ending] = [
      aPod('u-pod', { name: 'p' }),
      aPod('u-2', { name: 'p2' }),
      aPod('u-3', { name: 'p3', terminating: true }),
    ];
    const { step, remove } = plan(anObservation({ agent: anAgent({}, BOUND), bound, pods: [bound, other, ending] }));
    assert.deepEqual([step.kind, remove], ['keep', [other]]);
  });

  it('takes neither pod when two agents are bound to it', () => {
    const { step, remove } = plan(anObservation({ ...running(READY), boundTwice: true }));
    assert.equal(step.kind, 'create');
    assert.equal(remove.length, 1);
  });

  it('keeps a pod that runs while the guard is missing, and makes none', () => {
    const guard = { kind: 'missing', message: 'gone' } as const;
    assert.equal(plan(anObservation({ ...running(READY), guard })).step.kind, 'keep');
    assert.equal(plan(anObservation({ guard })).step.kind, 'none');
  });

  it('takes a warm pod before it makes one, and one it was given before that', () => {
    const warm = aPod('u-warm', { name: 'warm-standard-x' });
    assert.equal(plan(anObservation({ warm })).step.kind, 'claim');
    assert.deepEqual(plan(anObservation({ pods: [warm] })).step, { kind: 'bind', pod: warm });
  });
});

describe('an agent without messages', () => {
  const idle = { idle: { scaleToZeroAfter: '30m' } };
  const since = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000);

  it('goes to sleep after its time, stays Ready, and wakes for a message', () => {
    const quiet = anObservation({ ...running(READY, idle), lastActivity: since(31), pending: 0 });
    assert.deepEqual([condition(quiet, 'Ready')?.status, condition(quiet, 'Ready')?.reason], ['True', 'Idle']);
    const asleep = anAgent(idle, { conditions: statusOf(quiet).conditions });
    assert.equal(plan(anObservation({ agent: asleep, pending: 0 })).step.kind, 'none');
    assert.equal(plan(anObservation({ agent: asleep, pending: 1 })).step.kind, 'create');
    assert.equal(plan(anObservation({ agent: asleep })).step.kind, 'none');
    assert.equal(plan(anObservation({ agent: { ...asleep, spec: anAgent().spec } })).step.kind, 'create');
  });

  it('stays awake while it has work, while nobody knows, and for a while after it woke', () => {
    const stays = (change: Partial<Observed>) => plan(anObservation({ ...running(READY, idle), ...change })).step.kind;
    assert.equal(stays({ lastActivity: since(31), pending: 1 }), 'keep');
    assert.equal(stays({ lastActivity: since(31) }), 'keep');
    assert.equal(stays({ pending: 0 }), 'keep');
    const woken = aPod('u-pod', { name: 'p' });
    const pod = { ...woken, metadata: { ...woken.metadata, creationTimestamp: '2026-05-04T11:59:00Z' } };
    assert.equal(stays({ lastActivity: since(600), pending: 0, bound: pod, pods: [pod] }), 'keep');
  });

  it('is looked at again when its time may be over', () => {
    const { again } = plan(anObservation({ ...running(READY, idle), lastActivity: since(10), pending: 0 }));
    assert.equal(again, 20 * 60_000);
  });
});

describe('the status of an agent', () => {
  it('is not written twice for one state of the world', () => {
    fc.assert(
      fc.property(fc.constantFrom(...FAULTS), (fault) => {
        const observed = anObservation(fault.observed);
        const first = statusOf(observed, fault.applied);
        const { metadata } = observed.agent;
        const agent = { ...observed.agent, metadata, status: first };
        const later = { ...observed, agent, now: new Date(NOW.getTime() + 5_000) };
        // An agent that is bound no longer is no longer the same world.
        if (first.pod === undefined && observed.bound !== undefined) return;
        assert.equal(statusDiffers(first, statusOf(later, fault.applied), false), false);
      }),
    );
  });

  it('takes out by patch what is gone, the node of the pod before too', () => {
    const before = { pod: { name: 'p', uid: 'u', node: 'n' }, runtime: 'standard', level: 'sandboxed' };
    assert.deepEqual(statusPatch(before, { level: 'sandboxed' }), { pod: null, runtime: null, level: 'sandboxed' });
    const after = { ...before, pod: { name: 'q', uid: 'v' } };
    assert.deepEqual(statusPatch(before, after)['pod'], { node: null, name: 'q', uid: 'v' });
  });
});
