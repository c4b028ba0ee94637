import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OPERATOR_CONFIG } from '../../../test/support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { LABELS } from '../../api/cluster.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { Pod, StoredAgent } from '../kube/types.ts';
import { PodTemplates } from '../pods/pod-template.ts';
import { apply } from './apply.ts';
import type { PodPlan } from './plan.ts';

const [CLASS] = OPERATOR_CONFIG.sandboxClasses;
const TEMPLATE = new PodTemplates(OPERATOR_CONFIG).get(CLASS as NonNullable<typeof CLASS>);

function agentNamed(name: string): StoredAgent {
  return { metadata: { name, namespace: 'team-a', uid: `u-${name}` } } as unknown as StoredAgent;
}

/** One namespace of pods. As the API server, it refuses a patch of another version, and accepts one that names none. */
function fakePods(...pods: Pod[]) {
  const stored = new Map(pods.map((pod) => [pod.metadata.name, pod]));
  const calls: string[] = [];
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => stored.get(name),
    create: async (_type: unknown, pod: Pod) => {
      const { name } = pod.metadata;
      if (stored.has(name)) throw new ApiError(409, 'AlreadyExists', 'exists');
      calls.push(`create ${name}`);
      const created = { ...pod, metadata: { ...pod.metadata, uid: `u-${name}-${calls.length}` } };
      stored.set(name, created);
      return created;
    },
    patch: async (_type: unknown, { name }: { name: string }, patch: Pod) => {
      const before = stored.get(name);
      calls.push(`patch ${name} ${patch.metadata.resourceVersion}`);
      if (before === undefined) throw new ApiError(404, 'NotFound', 'gone');
      const { resourceVersion = before.metadata.resourceVersion } = patch.metadata;
      if (resourceVersion !== before.metadata.resourceVersion) throw new ApiError(409, 'Conflict', 'changed');
      const labels = { ...before.metadata.labels, ...patch.metadata.labels };
      const after = { ...before, metadata: { ...before.metadata, ...patch.metadata, labels, resourceVersion: 'next' } };
      stored.set(name, after);
      return after;
    },
    delete: async (_type: unknown, { name }: { name: string }, { uid }: { uid: string }) => {
      calls.push(`delete ${name} ${uid}`);
      if (stored.get(name)?.metadata.uid === uid) stored.delete(name);
      return true;
    },
  };
  return { client: client as unknown as KubeClient, stored, calls };
}

function warmPod(resourceVersion: string, change: Partial<Pod['metadata']> = {}): Pod {
  return { metadata: { name: 'warm-1', namespace: 'team-a', uid: 'u-warm', resourceVersion, ...change } };
}

const planOf = (step: PodPlan['step']): PodPlan => ({
  remove: [],
  step,
  suspended: undefined,
  requeueAfterMs: undefined,
});

function claimBy(name: string, seen: Pod, client: KubeClient) {
  const target = { agent: agentNamed(name), isReserved: true, reachesHosts: false };
  return apply(client, target, planOf({ kind: 'claim', pod: seen, template: TEMPLATE }), NEVER_ABORTED);
}

describe('the claim of a warm pod', () => {
  it('a pod that another agent has already claimed is not taken from it', async () => {
    const seen = warmPod('1');
    const { client, stored } = fakePods(seen);
    assert.equal((await claimBy('first', seen, client)).kind, 'bound');
    // The cache of the second reconcile lags: the response of the first claim was lost, or the previous leader sent it.
    assert.equal((await claimBy('second', seen, client)).kind, 'waiting');
    assert.equal(stored.get('warm-1')?.metadata.labels?.[LABELS.agentUid], 'u-first');
  });

  it('a pod that only the kubelet changed is claimed in its new version', async () => {
    const { client, calls } = fakePods(warmPod('2'));
    assert.equal((await claimBy('first', warmPod('1'), client)).kind, 'bound');
    assert.deepEqual(calls, ['patch warm-1 1', 'patch warm-1 2']);
  });

  for (const [what, stored] of [
    ['is deleted', []],
    ['is terminating', [warmPod('2', { deletionTimestamp: '2031-01-01T00:00:00Z' })]],
    ['has another UID', [warmPod('2', { uid: 'u-other' })]],
  ] as const) {
    it(`a pod that ${what} is not claimed, and the agent selects another one`, async () => {
      const { client, calls } = fakePods(...stored);
      assert.equal((await claimBy('first', warmPod('1'), client)).kind, 'waiting');
      assert.equal(calls.length, 1);
    });
  }
});

describe('the creation of a pod whose name is taken', () => {
  const agent = agentNamed('analyst');
  const plan = planOf({ kind: 'create', name: 'analyst-1', template: TEMPLATE });
  const createIn = (client: KubeClient, isReserved: boolean) =>
    apply(client, { agent, isReserved, reachesHosts: false }, plan, NEVER_ABORTED);

  /** The own pod that an operator created before it stopped, after a webhook changed it. */
  async function createdBefore(change: (pod: Pod) => Pod) {
    const fake = fakePods();
    await createIn(fake.client, true);
    const created = fake.stored.get('analyst-1');
    assert.ok(created !== undefined);
    fake.stored.set('analyst-1', change(created));
    fake.calls.length = 0;
    return fake;
  }

  const withToleration = (pod: Pod) => ({ ...pod, spec: { ...pod.spec, tolerations: [{ key: 'added' }] } }) as Pod;
  const withoutLabel = (pod: Pod) => ({ ...pod, metadata: { ...pod.metadata, labels: {} } });

  it('an own pod that a webhook changed is bound where its labels are reserved to the operator', async () => {
    const { client, calls } = await createdBefore(withToleration);
    assert.equal((await createIn(client, true)).kind, 'bound');
    assert.deepEqual(calls, []);
  });

  it('an own pod that differs where any user could have created it is deleted by its UID and created again', async () => {
    const { client, calls } = await createdBefore(withToleration);
    assert.equal((await createIn(client, false)).kind, 'waiting');
    assert.equal((await createIn(client, false)).kind, 'bound');
    assert.deepEqual(calls, ['delete analyst-1 u-analyst-1-1', 'create analyst-1']);
  });

  it('an own pod that the status does not name is bound without a write, or deleted when it differs', async () => {
    const { client, stored, calls } = await createdBefore(withToleration);
    const pod = stored.get('analyst-1');
    assert.ok(pod !== undefined);
    const bind = (isReserved: boolean) =>
      apply(
        client,
        { agent, isReserved, reachesHosts: false },
        planOf({ kind: 'bind', pod, template: TEMPLATE }),
        NEVER_ABORTED,
      );
    assert.deepEqual(await bind(true), { kind: 'bound', pod });
    assert.deepEqual(calls, []);
    assert.equal((await bind(false)).kind, 'waiting');
    assert.deepEqual(calls, ['delete analyst-1 u-analyst-1-1']);
  });

  it('a pod of another owner is neither bound nor deleted', async () => {
    const { client, calls } = await createdBefore(withoutLabel);
    const result = await createIn(client, true);
    assert.ok(result.kind === 'refused' && result.reason === 'PodNameConflict');
    assert.deepEqual(calls, []);
  });
});

describe('the way of a pod to the egress proxy', () => {
  const agent = agentNamed('analyst');
  const run = (client: KubeClient, step: PodPlan['step'], reachesHosts: boolean) =>
    apply(client, { agent, isReserved: true, reachesHosts }, planOf(step), NEVER_ABORTED);

  for (const [how, step] of [
    ['created', { kind: 'create', name: 'analyst-1', template: TEMPLATE }],
    ['claimed', { kind: 'claim', pod: warmPod('1'), template: TEMPLATE }],
  ] as const) {
    it(`the pod of an agent with grants for hosts has the label when it is ${how}, and no other pod`, async () => {
      for (const reachesHosts of [true, false]) {
        const { client, calls } = fakePods(warmPod('1'));
        const result = await run(client, step, reachesHosts);
        assert.ok(result.kind === 'bound');
        assert.equal(result.pod.metadata.labels?.[LABELS.egress], reachesHosts ? 'true' : undefined);
        assert.equal(calls.length, 1);
      }
    });
  }

  it('changed grants open and close the way of the pod that the agent has, with one write each', async () => {
    const { client, stored, calls } = fakePods();
    const created = await run(client, { kind: 'create', name: 'analyst-1', template: TEMPLATE }, false);
    assert.ok(created.kind === 'bound');
    for (const reachesHosts of [true, false]) {
      const keep = () => ({ kind: 'keep', pod: stored.get('analyst-1') ?? created.pod }) as const;
      calls.length = 0;
      await run(client, keep(), reachesHosts);
      await run(client, keep(), reachesHosts);
      assert.equal(
        stored.get('analyst-1')?.metadata.labels?.[LABELS.egress] ?? undefined,
        reachesHosts ? 'true' : undefined,
      );
      assert.equal(calls.length, 1, calls.join('\n'));
    }
  });
});
