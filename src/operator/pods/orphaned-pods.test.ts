import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { Store } from '../../kube/informer/store.ts';
import { Cache } from '../kube/cache.ts';
import type { Pod, StoredAgent } from '../kube/types.ts';
import { OrphanedPods, type OrphanedPodsDeps } from './orphaned-pods.ts';

interface PodFields {
  readonly agentUid?: string;
  readonly agentName?: string;
  readonly hasOwner?: boolean;
}

function aPod(name: string, { agentUid, agentName, hasOwner = false }: PodFields): Pod {
  return {
    metadata: {
      name,
      namespace: 'team-a',
      uid: `u-${name}`,
      labels: agentUid === undefined ? {} : { [LABELS.agentUid]: agentUid },
      annotations: agentName === undefined ? {} : { [ANNOTATIONS.agent]: agentName },
      ...(hasOwner
        ? { ownerReferences: [{ apiVersion: 'v', kind: 'Agent', name: 'x', uid: 'gone', controller: true }] }
        : {}),
    },
  } as Pod;
}

const agentNamed = (name: string, uid: string) =>
  ({ metadata: { name, namespace: 'team-a', uid } }) as unknown as StoredAgent;

/** `stored` are the agents of the API server; `cached` those that the watch has delivered. */
function collector(pods: Pod[], cached: StoredAgent[] = [], stored: StoredAgent[] = cached) {
  const agents = new Store<StoredAgent>();
  const podStore = new Store<Pod>();
  agents.addIndex('uid', ({ metadata }) => [metadata.uid]);
  agents.replace(cached);
  podStore.replace(pods);
  const deleted: unknown[] = [];
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => stored.find(({ metadata }) => metadata.name === name),
    delete: async (_type: unknown, { name }: { name: string }, options: object) => deleted.push([name, options]) > 0,
  };
  const deps = { client, agents: new Cache([agents]), pods: new Cache([podStore]) } as unknown as OrphanedPodsDeps;
  return { orphans: new OrphanedPods(deps, 'uid'), deleted };
}

describe('the pods of agents that were deleted without their pods', () => {
  it('a pod without an owner and an agent is deleted by its UID in the second round', async () => {
    const { orphans, deleted } = collector([aPod('left', { agentUid: 'gone', agentName: 'analyst' })]);
    assert.equal(await orphans.collect(NEVER_ABORTED), 0);
    assert.deepEqual(deleted, []);
    assert.equal(await orphans.collect(NEVER_ABORTED), 1);
    assert.deepEqual(deleted, [['left', { uid: 'u-left' }]]);
  });

  it('a pod stays when it is warm, has an owner or an agent, or names no agent', async () => {
    const pods = [
      aPod('warm', {}),
      aPod('owned', { agentUid: 'gone', agentName: 'x', hasOwner: true }),
      aPod('used', { agentUid: 'u-analyst', agentName: 'analyst' }),
      aPod('unnamed', { agentUid: 'gone' }),
    ];
    const { orphans, deleted } = collector(pods, [agentNamed('analyst', 'u-analyst')]);
    for (let round = 0; round < 3; round += 1) assert.equal(await orphans.collect(NEVER_ABORTED), 0);
    assert.deepEqual(deleted, []);
  });

  it('a pod stays while only the cache lacks its agent, and goes when another agent has the name', async () => {
    const pod = aPod('fresh', { agentUid: 'u-new', agentName: 'analyst' });
    const lagging = collector([pod], [], [agentNamed('analyst', 'u-new')]);
    const replaced = collector([pod], [], [agentNamed('analyst', 'u-other')]);
    for (const { orphans } of [lagging, replaced]) {
      await orphans.collect(NEVER_ABORTED);
      await orphans.collect(NEVER_ABORTED);
    }
    assert.deepEqual(lagging.deleted, []);
    assert.equal(replaced.deleted.length, 1);
  });
});
