import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, type PodObject, policyObject } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

/** acceptance.yaml configures a pool of one pod for this namespace and class. */
const NAMESPACE = 'pooled';
const CLASS = 'warm';
/** A node that starts many pods at once takes long. */
const PATIENT = { timeoutMs: 240_000, intervalMs: 250 };

/** Warm pods, which wait for an agent. */
export function warmPods(cluster: () => InstalledCluster): void {
  describe('a pool of warm pods', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE), policyObject(NAMESPACE));
    });

    /** Waits for the ready pod of the pool that is none of `others`. */
    async function warmPod(...others: PodObject[]): Promise<PodObject> {
      let found: PodObject | undefined;
      await pollAssertion(
        'one ready warm pod',
        async () => {
          const free = (await agents.listPods()).filter(
            ({ metadata }) => metadata.labels?.['temper.dev/agent-uid'] === undefined,
          );
          assert.equal(free.length, 1);
          [found] = free;
          assert.ok(found !== undefined && isReady(found));
          assert.ok(!others.some(({ metadata }) => metadata.uid === found?.metadata.uid));
        },
        PATIENT,
      );
      return found as PodObject;
    }

    it('the pool has a ready pod before any agent exists', async () => {
      assert.ok(isReady(await warmPod()));
    });

    it('an agent claims the warm pod and replies, and the pool is refilled', async () => {
      const warm = await warmPod();
      await cluster().apply(agentObject(NAMESPACE, 'first', { sandbox: { class: CLASS } }));
      await agents.waitForReason('first', 'Running');
      const bound = await agents.boundPod('first');
      assert.equal(bound.metadata.uid, warm.metadata.uid);
      assert.deepEqual(
        bound.metadata.ownerReferences?.map(({ uid }) => uid),
        [(await agents.get('first')).metadata.uid],
      );
      assert.equal(await agents.sendAndWait('first', 'hello'), 'heard: hello');
      const next = await warmPod(warm);
      await cluster().apply(agentObject(NAMESPACE, 'second', { sandbox: { class: CLASS } }));
      await agents.waitForReason('second', 'Running');
      assert.equal((await agents.boundPod('second')).metadata.uid, next.metadata.uid);
      assert.equal(await agents.sendAndWait('second', 'hello'), 'heard: hello');
      // Claiming a pod restarts no container.
      const containers = [await agents.boundPod('first'), await agents.boundPod('second')].flatMap(
        ({ status }) => status.containerStatuses ?? [],
      );
      assert.ok(containers.length === 4 && containers.every(({ restartCount }) => restartCount === 0));
    });

    it('an agent that needs more than the class does not claim a warm pod', async () => {
      const warm = await warmPod();
      const files = [{ path: 'data', configMap: { name: 'reading' } }];
      const metadata = { name: 'reading', namespace: NAMESPACE };
      await cluster().apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.txt': 'hello' } });
      await cluster().apply(agentObject(NAMESPACE, 'third', { sandbox: { class: CLASS, workspace: { files } } }));
      await agents.waitForReason('third', 'Running');
      assert.notEqual((await agents.boundPod('third')).metadata.uid, warm.metadata.uid);
      assert.equal((await warmPod()).metadata.uid, warm.metadata.uid);
    });
  });
}

function isReady({ status }: PodObject): boolean {
  return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
}
