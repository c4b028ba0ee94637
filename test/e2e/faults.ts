import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { inside, processOf } from './inside.ts';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, policyObject } from './scene.ts';

const NAMESPACE = 'faults';
/** What kubelet and operator wait before they say that something does not start. */
const PATIENCE_MS = 90_000;

/** What only a real node does to a pod. `kubectl describe agent` alone must tell. */
export function faultsOfPods(installation: () => Installation): void {
  describe('kubectl describe agent tells', () => {
    let agents: Agents;

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      await installation().apply(namespaceObject(NAMESPACE));
      const files = [{ path: 'data', configMap: { name: 'forgotten' } }];
      const inClass = (name: string) => agentObject(NAMESPACE, name, { sandbox: { class: name } });
      await installation().apply(
        policyObject(NAMESPACE),
        ...['imageless', 'nowhere', 'crashing'].map(inClass),
        agentObject(NAMESPACE, 'fileless', { sandbox: { workspace: { files } } }),
        agentObject(NAMESPACE, 'greedy'),
        agentObject(NAMESPACE, 'evicted'),
      );
      for (const name of ['greedy', 'evicted']) await agents.until(name, 'Running');
    });

    /** The condition, as somebody reads it who knows nothing else. */
    async function described(agent: string, reason: string, message: RegExp): Promise<void> {
      await eventually(async () => {
        const text = await installation().kubectl('describe', 'agent', agent, '-n', NAMESPACE);
        assert.match(text, new RegExp(`Reason:\\s+${reason}\\b`));
        assert.match(text.replaceAll(/\s+/g, ' '), message);
      }, PATIENCE_MS);
    }

    it('an image that cannot be had', () =>
      described('imageless', 'ImagePullFailed', /container "sandbox": .*localhost\/nothing:e2e.*; correct the image/));

    it('a pod that no node takes', () =>
      described(
        'nowhere',
        'Unschedulable',
        /fits no node: 0\/1 nodes are available: .*node affinity\/selector.*; add room/,
      ));

    it('a container that ends again and again', () =>
      described('crashing', 'PodCrashLooping', /container "sandbox" exited 1 .*; see kubectl logs/));

    it('files that are not there, and goes on when they are', async () => {
      await described(
        'fileless',
        'Starting',
        /does not start: FailedMount: .*configmap "forgotten" not found; correct/,
      );
      const metadata = { name: 'forgotten', namespace: NAMESPACE };
      await installation().apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.txt': 'hello' } });
      await agents.until('fileless', 'Running', 'Ready', PATIENCE_MS);
    });

    it('nothing of a sandbox that took more memory than it has, or was killed, once it works on', async () => {
      const { node } = installation();
      const pod = await agents.pod('greedy');
      const first = await processOf(node, pod, 'sandbox');
      // Which processes go with it depends on the kernel's version of control groups: the one that took it, or all.
      await assert.rejects(
        inside(node, pod, 'sandbox', 'const taken = []; for (;;) taken.push(Buffer.alloc(8e6, 1));'),
      );
      await eventually(async () => assert.match(await agents.ask('greedy', 'hello'), /heard: hello/));
      await node.onNode('kill', '-KILL', await processOf(node, await agents.pod('greedy'), 'sandbox'));
      await eventually(async () => {
        assert.notEqual(await processOf(node, await agents.pod('greedy'), 'sandbox'), first);
      });
      await agents.until('greedy', 'Running');
      assert.equal(await agents.ask('greedy', 'again'), 'heard: again');
      assert.equal((await agents.pod('greedy')).metadata.uid, pod.metadata.uid);
    });

    it('a pod that was evicted, and has another', async () => {
      const pod = await agents.pod('evicted');
      const { name } = pod.metadata;
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
      assert.equal((await installation().node.admin.call('POST', path, { body })).status, 201);
      await eventually(async () => assert.notEqual((await agents.pod('evicted')).metadata.uid, pod.metadata.uid));
      await agents.until('evicted', 'Running');
      assert.equal(await agents.ask('evicted', 'hello'), 'heard: hello');
    });
  });
}
