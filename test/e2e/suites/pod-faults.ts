import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { runInPod, containerPid } from '../support/in-pod.ts';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, policyObject } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const NAMESPACE = 'faults';
/** Includes the time that kubelet and operator wait before they report a pod that does not start. */
const TIMEOUT_MS = 90_000;
const REPLY_TIMEOUT_MS = 300_000;

/** Pod failures that only a real node produces. `kubectl describe agent` alone must explain them. */
export function podFaults(cluster: () => InstalledCluster): void {
  describe('pod failures in kubectl describe agent', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      const files = [{ path: 'data', configMap: { name: 'forgotten' } }];
      const inClass = (name: string) => agentObject(NAMESPACE, name, { sandbox: { class: name } });
      await cluster().apply(
        policyObject(NAMESPACE),
        ...['imageless', 'nowhere', 'crashing'].map(inClass),
        agentObject(NAMESPACE, 'fileless', { sandbox: { workspace: { files } } }),
        agentObject(NAMESPACE, 'greedy'),
        agentObject(NAMESPACE, 'evicted'),
      );
      for (const name of ['greedy', 'evicted']) await agents.waitForReason(name, 'Running');
    });

    /** Asserts reason and message of a condition in the output of `kubectl describe agent`. */
    async function assertDescribed(agent: string, reason: string, message: RegExp): Promise<void> {
      await pollAssertion(
        `condition ${reason} of ${agent}`,
        async () => {
          const text = await cluster().kubectl('describe', 'agent', agent, '-n', NAMESPACE);
          assert.match(text, new RegExp(`Reason:\\s+${reason}\\b`));
          assert.match(text.replaceAll(/\s+/g, ' '), message);
        },
        { timeoutMs: TIMEOUT_MS },
      );
    }

    it('an image that cannot be pulled is reported', () =>
      assertDescribed(
        'imageless',
        'ImagePullFailed',
        /container "sandbox": .*localhost\/nothing:e2e.*; correct the image/,
      ));

    it('a pod that fits no node is reported', () =>
      assertDescribed(
        'nowhere',
        'Unschedulable',
        /fits no node: 0\/1 nodes are available: .*node affinity\/selector.*; add capacity/,
      ));

    it('a crash-looping container is reported', () =>
      assertDescribed('crashing', 'PodCrashLooping', /container "sandbox" exited 1 .*; see kubectl logs/));

    it('a missing ConfigMap is reported, and the agent starts when it is created', async () => {
      await assertDescribed(
        'fileless',
        'Starting',
        /does not start: FailedMount: .*configmap "forgotten" not found; fix the cause/,
      );
      const metadata = { name: 'forgotten', namespace: NAMESPACE };
      await cluster().apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.txt': 'hello' } });
      await agents.waitForReason('fileless', 'Running', 'Ready', TIMEOUT_MS);
    });

    it('an agent whose sandbox ran out of memory or was killed recovers and becomes Running', async () => {
      const { node } = cluster();
      const pod = await agents.boundPod('greedy');
      const first = await containerPid(node, pod, 'sandbox');
      // Depending on the cgroup version, the kernel kills one process or all processes of the container.
      await assert.rejects(
        runInPod(node, pod, 'sandbox', 'const taken = []; for (;;) taken.push(Buffer.alloc(8e6, 1));'),
      );
      const reply = async () => assert.match(await agents.sendAndWait('greedy', 'hello'), /heard: hello/);
      await pollAssertion('the reply of the restarted sandbox', reply, { timeoutMs: REPLY_TIMEOUT_MS });
      await node.onNode('kill', '-KILL', await containerPid(node, await agents.boundPod('greedy'), 'sandbox'));
      await pollAssertion('the restart of the sandbox', async () => {
        assert.notEqual(await containerPid(node, await agents.boundPod('greedy'), 'sandbox'), first);
      });
      await agents.waitForReason('greedy', 'Running');
      assert.equal(await agents.sendAndWait('greedy', 'again'), 'heard: again');
      assert.equal((await agents.boundPod('greedy')).metadata.uid, pod.metadata.uid);
    });

    it('an agent whose pod was evicted gets another pod', async () => {
      const pod = await agents.boundPod('evicted');
      const { name } = pod.metadata;
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
      assert.equal((await cluster().node.admin.call('POST', path, { body })).status, 201);
      await pollAssertion('a new pod', async () =>
        assert.notEqual((await agents.boundPod('evicted')).metadata.uid, pod.metadata.uid),
      );
      await agents.waitForReason('evicted', 'Running');
      assert.equal(await agents.sendAndWait('evicted', 'hello'), 'heard: hello');
    });
  });
}
