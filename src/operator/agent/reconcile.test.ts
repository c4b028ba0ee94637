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
import { type AgentDeps, AgentReconciler } from './reconcile.ts';
import { ValidationCache } from './validation-cache.ts';

const IN_FLIGHT = { streamSequence: 7, deliveries: 3 };
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

type Fault = 'status conflict' | 'NATS unavailable' | 'quota exceeded';

const QUOTA_MESSAGE =
  'pods "b" is forbidden: exceeded quota: temper-agents, requested: pods=1, used: pods=1, limited: pods=1';

/** Reconciles an agent whose pod A was deleted. Records the calls to the API server and to NATS in their order. */
function replacingPod(fault?: Fault) {
  const calls: string[] = [];
  const statuses: string[] = [];
  let created: Pod | undefined;
  const agent = anAgent({ pod: { name: 'pod-a', uid: 'u-a' }, conditions: [] });
  const agentStore = new Store<StoredAgent>({ freeze: true });
  const policyStore = new Store<StoredPolicy>({ freeze: true });
  const podStore = new Store<Pod>({ freeze: true });
  const cacheOf = { agents: new Cache([agentStore]), policies: new Cache([policyStore]), pods: new Cache([podStore]) };
  addIndexes(cacheOf.agents, cacheOf.pods);
  agentStore.set(agent);
  policyStore.set(POLICY);
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => (name === created?.metadata.name ? created : undefined),
    create: async (_type: unknown, pod: Pod) => {
      calls.push('create pod B');
      if (fault === 'quota exceeded') throw new ApiError(403, 'Forbidden', QUOTA_MESSAGE);
      created = { ...pod, metadata: { ...pod.metadata, uid: 'u-b' } };
      return created;
    },
    patch: async (_type: unknown, _ref: unknown, patch: { status: StoredAgent['status'] }) => {
      calls.push(`bind ${patch.status?.pod?.uid}`);
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
    inFlightMessage: async () => {
      calls.push('read the message in flight');
      return IN_FLIGHT;
    },
    redeliver: async (uid: string, message: object) => {
      assert.deepEqual([uid, message], ['u-agent', IN_FLIGHT]);
      calls.push('redeliver the message');
      return true;
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
    events: { record: () => {} },
  } as unknown as AgentDeps);
  const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
  const reconcile = () => reconciler.reconcile('team-a/analyst', { log, signal: NEVER_ABORTED });
  return { calls, statuses, clock, podStore, quotaReleases, reconcile };
}

describe('the reconcile of an agent', () => {
  it('a pod replacement reads the message in flight, binds the new pod, then redelivers the message', async () => {
    const { calls, reconcile } = replacingPod();
    await reconcile();
    assert.deepEqual(calls, ['create pod B', 'read the message in flight', 'bind u-b', 'redeliver the message']);
  });

  it('a message is not redelivered when the new pod could not be bound', async () => {
    const { calls, reconcile } = replacingPod('status conflict');
    await assert.rejects(reconcile(), { status: 409 });
    assert.deepEqual(calls, ['create pod B', 'read the message in flight', 'bind u-b']);
  });

  it('an unavailable NATS does not delay the new pod', async () => {
    const { calls, reconcile } = replacingPod('NATS unavailable');
    await reconcile();
    assert.deepEqual(calls, ['create pod B', 'bind u-b']);
  });

  it('a bound pod that the status already names reads no message', async () => {
    const { calls, reconcile } = replacingPod();
    await reconcile();
    calls.length = 0;
    await reconcile();
    assert.deepEqual(calls, []);
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
