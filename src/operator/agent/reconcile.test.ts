import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_CONFIG } from '../../../test/support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ApiError } from '../../kube/client/kube-client.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { Store } from '../../kube/informer/store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod, StoredAgent, StoredPolicy } from '../kube/types.ts';
import { CrashBackoff } from '../pods/crash-backoff.ts';
import { PodTemplates } from '../pods/pod-template.ts';
import { QuotaReleases } from '../pods/quota-releases.ts';
import { StartTimes } from '../pods/start-times.ts';
import { AgentRanks } from '../policy/agent-ranks.ts';
import { WarmPool } from '../pool/warm-pool.ts';
import { NO_AGENT_STATS } from '../ports.ts';
import { addIndexes } from './observe.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { addToolIndexes } from '../tool/tool-index.ts';
import { type AgentDeps, AgentReconciler } from './reconcile.ts';
import { ValidationCache } from './validation-cache.ts';

const IN_FLIGHT = [{ streamSequence: 7, deliveries: 3 }];
const METADATA = {
  namespace: 'team-a',
  resourceVersion: 'v1',
  generation: 1,
  creationTimestamp: '2026-05-04T08:00:00Z',
};

function anAgent(status: object): StoredAgent {
  const spec = { trustPolicyRef: { name: 'standard' }, model: { primary: 'a/b' }, prompt: { system: 'x' } };
  const metadata = { ...METADATA, name: 'analyst', uid: 'u-agent' };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata, spec, status } as unknown as StoredAgent;
}

const POLICY = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'TrustPolicy',
  metadata: { ...METADATA, name: 'standard', uid: 'u-policy' },
  spec: {},
} as unknown as StoredPolicy;

type Fault = 'status conflict' | 'NATS unavailable' | 'quota exceeded' | 'pod exists';
/** The status of an agent whose pod A was deleted. */
const BOUND_TO_A = { pod: { name: 'pod-a', uid: 'u-a' }, conditions: [] };
/** The default of the CRD. */
const DEFAULT_STATUS = { conditions: [{ type: 'Ready', status: 'Unknown', reason: 'Pending', message: 'm' }] };
const READY_POD = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

const QUOTA_MESSAGE =
  'pods "b" is forbidden: exceeded quota: temper-agents, requested: pods=1, used: pods=1, limited: pods=1';

/** Reconciles one agent. Records the calls to the API server and to NATS in their order. */
function reconciling(initial: object, fault?: Fault) {
  const calls: string[] = [];
  const statuses: string[] = [];
  const events: string[] = [];
  let versions = 1;
  let created: Pod | undefined;
  const agent = anAgent(initial);
  const agentStore = new Store<StoredAgent>({ freeze: true });
  const policyStore = new Store<StoredPolicy>({ freeze: true });
  const podStore = new Store<Pod>({ freeze: true });
  const tools = new Cache([new Store<StoredTool>()]);
  const cacheOf = {
    agents: new Cache([agentStore]),
    policies: new Cache([policyStore]),
    pods: new Cache([podStore]),
    tools,
  };
  addIndexes(cacheOf.agents, cacheOf.pods);
  addToolIndexes({ tools, approvals: new Cache([]), requests: new Cache([]) });
  agentStore.set(agent);
  policyStore.set(POLICY);
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => {
      calls.push('get a pod');
      return name === created?.metadata.name ? created : undefined;
    },
    create: async (_type: unknown, pod: Pod) => {
      calls.push('create pod B');
      if (fault === 'quota exceeded') throw new ApiError(403, 'Forbidden', QUOTA_MESSAGE);
      created = { ...pod, metadata: { ...pod.metadata, uid: 'u-b', resourceVersion: '1' } };
      if (fault === 'pod exists') throw new ApiError(409, 'AlreadyExists', 'exists');
      return created;
    },
    patch: async (_type: unknown, _ref: unknown, patch: { status: StoredAgent['status'] }) => {
      calls.push(`write status ${patch.status?.pod?.uid}`);
      const ready = patch.status?.conditions?.find(({ type }) => type === 'Ready');
      statuses.push(`${ready?.reason}: ${ready?.message}`);
      if (fault === 'status conflict') throw new ApiError(409, 'Conflict', 'changed');
      // As the API server, which removes the members that a merge patch sets to null.
      const status = Object.fromEntries(Object.entries(patch.status ?? {}).filter(([, value]) => value !== null));
      return { ...agent, metadata: { ...agent.metadata, resourceVersion: 'v2' }, status };
    },
  };
  const agentActivity = {
    unavailableSince: () => (fault === 'NATS unavailable' ? new Date(0) : undefined),
    inFlightMessages: async () => {
      calls.push('read the messages in flight');
      return IN_FLIGHT;
    },
    redeliver: async (uid: string, messages: object) => {
      assert.deepEqual([uid, messages], ['u-agent', IN_FLIGHT]);
      calls.push('redeliver the messages');
      return IN_FLIGHT.length;
    },
  };
  const clock = new FakeClock();
  const quotaReleases = new QuotaReleases(cacheOf.pods, clock);
  const reconciler = new AgentReconciler({
    ...cacheOf,
    client,
    agentActivity,
    agentStats: NO_AGENT_STATS,
    clock,
    config: OPERATOR_CONFIG,
    templates: new PodTemplates(OPERATOR_CONFIG),
    validation: new ValidationCache(),
    crashBackoff: new CrashBackoff(),
    pool: new WarmPool(cacheOf.pods),
    policyMonitor: { state: async () => ({ kind: 'protected' }) },
    namespaces: { prepare: async () => ({ kind: 'prepared' }) },
    ranks: new AgentRanks(),
    starts: new StartTimes(clock, undefined),
    hasPool: () => false,
    quotaReleases,
    events: { record: (_object: unknown, { reason }: { reason: string }) => events.push(reason) },
  } as unknown as AgentDeps);
  const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
  const reconcile = () => reconciler.reconcile('team-a/analyst', { log, signal: NEVER_ABORTED });
  /** The informer reports the created pod. */
  const observePod = (status: object, change: object = {}) => {
    assert.ok(created !== undefined);
    podStore.set({
      ...created,
      metadata: { ...created.metadata, ...change, resourceVersion: String((versions += 1)) },
      status,
    });
  };
  /** The informer reports this status. */
  const observeStatus = (status: object) => {
    const metadata = { ...agent.metadata, resourceVersion: `v${(versions += 1)}` };
    agentStore.set({ ...anAgent(status), metadata });
  };
  const podName = () => created?.metadata.name;
  return { calls, statuses, events, clock, podStore, quotaReleases, reconcile, observePod, observeStatus, podName };
}

function replacingPod(fault?: Fault) {
  const { calls, ...rest } = reconciling(BOUND_TO_A, fault);
  const writes = () => calls.filter((call) => call !== 'get a pod');
  return { calls, writes, ...rest };
}

describe('the reconcile of an agent', () => {
  it('a pod replacement reads the message in flight, creates the new pod, then redelivers the message', async () => {
    const { writes, reconcile } = replacingPod();
    await reconcile();
    assert.deepEqual(writes(), [
      'read the messages in flight',
      'create pod B',
      'redeliver the messages',
      'write status u-b',
    ]);
  });

  it('an agent whose status and pods lag behind gets the pod that it already has under the name of an earlier one', async () => {
    const { calls, statuses, reconcile, observeStatus, podName } = reconciling(DEFAULT_STATUS);
    await reconcile();
    observeStatus({ pod: { name: podName(), uid: 'u-earlier' }, conditions: [] });
    calls.length = 0;
    await reconcile();
    assert.deepEqual([calls.includes('create pod B'), calls.at(-1)], [false, 'write status u-b']);
    assert.equal(statuses.length, 1);
  });

  it('a message is not redelivered when the new pod could not be created, or existed and may work on it', async () => {
    const refused = replacingPod('quota exceeded');
    await refused.reconcile();
    assert.equal(refused.calls.includes('redeliver the messages'), false);
    const existing = replacingPod('pod exists');
    await existing.reconcile();
    assert.deepEqual(existing.writes(), ['read the messages in flight', 'create pod B', 'write status u-b']);
  });

  it('a message is redelivered although the status write conflicts, because the pod is bound without it', async () => {
    const { calls, reconcile } = replacingPod('status conflict');
    await assert.rejects(reconcile(), { status: 409 });
    assert.ok(calls.includes('redeliver the messages'));
  });

  it('an unavailable NATS does not delay the new pod', async () => {
    const { writes, reconcile } = replacingPod('NATS unavailable');
    await reconcile();
    assert.deepEqual(writes(), ['create pod B', 'write status u-b']);
  });

  it('a bound pod that the status already names reads no message', async () => {
    const { calls, writes, reconcile } = replacingPod();
    await reconcile();
    calls.length = 0;
    await reconcile();
    assert.deepEqual(writes(), []);
  });

  it('a full quota is no rejection while a pod of the namespace terminates, and one when none does', async () => {
    const { statuses, clock, podStore, quotaReleases, reconcile } = replacingPod('quota exceeded');
    const previous = {
      metadata: {
        name: 'pod-a',
        namespace: 'team-a',
        uid: 'u-a',
        resourceVersion: '1',
        deletionTimestamp: new Date(30_000).toISOString(),
        deletionGracePeriodSeconds: 30,
      },
    };
    podStore.set(previous);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 30_000 });
    podStore.delete('team-a/pod-a');
    quotaReleases.onDeleted(previous);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 1_000 });
    assert.match(statuses.at(-1) ?? '', /^Starting: waiting until a terminating pod of namespace "team-a" releases/);
    await clock.advance(10_000);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 5_000 });
    assert.match(statuses.at(-1) ?? '', /^PodRejected: .*exceeded quota: temper-agents/);
  });
});

describe('the first status of an agent', () => {
  const starting = { phase: 'Pending' };

  it('a new agent whose pod becomes ready costs one pod, one status and one Event', async () => {
    const { calls, statuses, events, reconcile, observePod } = reconciling(DEFAULT_STATUS);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 5_000 });
    observePod(starting);
    await reconcile();
    observePod(READY_POD);
    await reconcile();
    assert.deepEqual(calls, ['create pod B', 'write status u-b']);
    assert.match(statuses.join(), /^Running: /);
    assert.deepEqual(events, ['Running']);
  });

  it('a new agent whose pod is still starting after five seconds is reported as starting, once', async () => {
    const { clock, statuses, reconcile, observePod } = reconciling(DEFAULT_STATUS);
    await reconcile();
    observePod(starting);
    await clock.advance(4_999);
    assert.deepEqual(await reconcile(), { kind: 'requeueAfter', afterMs: 1 });
    assert.deepEqual(statuses, []);
    await clock.advance(1);
    await reconcile();
    await reconcile();
    assert.equal(statuses.length, 1);
    assert.match(statuses.join(), /^Starting: pod "analyst-\w+" is starting$/);
  });

  it('a fault of a new agent is reported at once', async () => {
    const waiting = { reason: 'ErrImagePull', message: 'no such image' };
    const noImage = { phase: 'Pending', containerStatuses: [{ name: 'agent', state: { waiting } }] };
    const { statuses, reconcile, observePod } = reconciling(DEFAULT_STATUS);
    await reconcile();
    observePod(noImage);
    await reconcile();
    assert.match(statuses.join(), /^ImagePullFailed: /);
    const refused = reconciling(DEFAULT_STATUS, 'quota exceeded');
    await refused.reconcile();
    assert.match(refused.statuses.join(), /^PodRejected: /);
  });

  it('a pod that the cache does not contain yet is read, and no second one is created', async () => {
    const { calls, reconcile } = reconciling(DEFAULT_STATUS);
    await reconcile();
    await reconcile();
    assert.deepEqual(calls, ['create pod B', 'get a pod']);
  });

  it('a pod that is deleted before its first status gets a successor with another name at once', async () => {
    const { calls, statuses, reconcile, observePod } = reconciling(DEFAULT_STATUS);
    await reconcile();
    observePod(starting, { deletionTimestamp: '2026-05-04T12:00:00Z' });
    await reconcile();
    assert.deepEqual(
      calls.filter((call) => call === 'create pod B'),
      ['create pod B', 'create pod B'],
    );
    assert.deepEqual(statuses, []);
  });

  it('an agent that was reported before gets every status at once', async () => {
    const idle = { conditions: [{ type: 'Ready', status: 'True', reason: 'Suspended', message: 'm' }] };
    const { statuses, reconcile } = reconciling(idle);
    await reconcile();
    assert.match(statuses.join(), /^Starting: /);
  });
});
