import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, policyObject } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const NAMESPACE = 'upgraded';
const NAMES = Array.from({ length: 10 }, (_, index) => `agent-${String(index + 1).padStart(2, '0')}`);
/** Ten pods start slowly on two processors. */
const TIMEOUT_MS = 240_000;
const BATCH_SIZE = 5;

/** The effect of an upgrade on running agents. `upgrade` passes the values of the installation. */
export function upgrades(cluster: () => InstalledCluster, upgrade: (...more: string[]) => Promise<string>): void {
  describe('helm upgrade with ten running agents', () => {
    let agents: NamespaceAgents;
    const podUids = async () => (await agents.listPods()).map(({ metadata }) => metadata.uid).toSorted();

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(policyObject(NAMESPACE));
      // Starting all agents at once overloads a node with two processors.
      for (let from = 0; from < NAMES.length; from += BATCH_SIZE) {
        const some = NAMES.slice(from, from + BATCH_SIZE);
        await cluster().apply(...some.map((name) => agentObject(NAMESPACE, name)));
        for (const name of some) await agents.waitForReason(name, 'Running', 'Ready', TIMEOUT_MS);
      }
    });

    it('an upgrade that changes only operator and gateway restarts no agent', async () => {
      const before = await podUids();
      assert.equal(before.length, NAMES.length);
      await upgrade('--set', 'operator.logLevel=debug', '--set', 'gateway.logLevel=debug');
      assert.equal(await agents.sendAndWait('agent-01', 'hello'), 'heard: hello');
      for (const name of NAMES) await agents.waitForReason(name, 'Running');
      const events = await cluster().kubectl('get', 'events', '--namespace', NAMESPACE, '--sort-by=.lastTimestamp');
      assert.deepEqual(await podUids(), before, `a pod was replaced; the last Events:\n${events.slice(-6_000)}`);
      const restarts = (await agents.listPods()).flatMap(({ status }) => status.containerStatuses ?? []);
      assert.ok(restarts.every(({ restartCount }) => restartCount === 0));
    });

    it('an upgrade that changes the pod template replaces every pod and loses no message', async () => {
      const before = await podUids();
      const upgrading = upgrade('--set', 'agent.resources.cpu=21m');
      const replies = NAMES.slice(0, 5).map((name) => agents.sendAndWait(name, `slowly ${name}`));
      await upgrading;
      await pollAssertion(
        'the replacement of all pods',
        async () => {
          const now = await podUids();
          assert.deepEqual(
            now.filter((uid) => before.includes(uid)),
            [],
          );
        },
        { timeoutMs: TIMEOUT_MS },
      );
      for (const name of NAMES) await agents.waitForReason(name, 'Running', 'Ready', TIMEOUT_MS);
      assert.deepEqual(
        await Promise.all(replies),
        NAMES.slice(0, 5).map((name) => `heard: slowly ${name}`),
      );
      assert.equal((await podUids()).length, NAMES.length);
      assert.equal(await agents.sendAndWait('agent-10', 'hello'), 'heard: hello');
    });
  });
}
