import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, type PodObject, policyObject } from './scene.ts';

/** The namespace and class that acceptance.yaml gives a pool of one. */
const NAMESPACE = 'pooled';
const CLASS = 'warm';

/** Pods that wait for an agent. */
export function warmPods(installation: () => Installation): void {
  describe('a pool of warm pods', () => {
    let agents: Agents;

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      await installation().apply(namespaceObject(NAMESPACE), policyObject(NAMESPACE));
    });

    /** The one pod of the pool, once there is one that is ready and none of `others`. */
    async function warmPod(...others: PodObject[]): Promise<PodObject> {
      let found: PodObject | undefined;
      await eventually(async () => {
        const free = (await agents.pods()).filter(
          ({ metadata }) => metadata.labels?.['temper.dev/agent-uid'] === undefined,
        );
        assert.equal(free.length, 1);
        [found] = free;
        assert.ok(found !== undefined && isReady(found));
        assert.ok(!others.some(({ metadata }) => metadata.uid === found?.metadata.uid));
      });
      return found as PodObject;
    }

    it('is there before any agent, and ready', async () => {
      assert.ok(isReady(await warmPod()));
    });

    it('gives an agent its pod, which answers, and fills up again', async () => {
      const warm = await warmPod();
      await installation().apply(agentObject(NAMESPACE, 'first', { sandbox: { class: CLASS } }));
      await agents.until('first', 'Running');
      const bound = await agents.pod('first');
      assert.equal(bound.metadata.uid, warm.metadata.uid);
      assert.deepEqual(
        bound.metadata.ownerReferences?.map(({ uid }) => uid),
        [(await agents.state('first')).metadata.uid],
      );
      assert.equal(await agents.ask('first', 'hello'), 'heard: hello');
      const next = await warmPod(warm);
      await installation().apply(agentObject(NAMESPACE, 'second', { sandbox: { class: CLASS } }));
      await agents.until('second', 'Running');
      assert.equal((await agents.pod('second')).metadata.uid, next.metadata.uid);
      assert.equal(await agents.ask('second', 'hello'), 'heard: hello');
      // Nobody restarted what was taken.
      const containers = [await agents.pod('first'), await agents.pod('second')].flatMap(
        ({ status }) => status.containerStatuses ?? [],
      );
      assert.ok(containers.length === 4 && containers.every(({ restartCount }) => restartCount === 0));
    });

    it('gives none to an agent that asks for more than its class', async () => {
      const warm = await warmPod();
      const files = [{ path: 'data', configMap: { name: 'reading' } }];
      const metadata = { name: 'reading', namespace: NAMESPACE };
      await installation().apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.txt': 'hello' } });
      await installation().apply(agentObject(NAMESPACE, 'third', { sandbox: { class: CLASS, workspace: { files } } }));
      await agents.until('third', 'Running');
      assert.notEqual((await agents.pod('third')).metadata.uid, warm.metadata.uid);
      assert.equal((await warmPod()).metadata.uid, warm.metadata.uid);
    });
  });
}

function isReady({ status }: PodObject): boolean {
  return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
}
