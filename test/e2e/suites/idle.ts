import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, policyObject, replies } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const NAMESPACE = 'idle';

/** Agents without a pod, and the messages they receive in that time. */
export function idleAgents(cluster: () => InstalledCluster): void {
  describe('an agent without a pod', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(
        policyObject(NAMESPACE),
        agentObject(NAMESPACE, 'sleeper', { idle: { scaleToZeroAfter: '3s' } }),
        agentObject(NAMESPACE, 'steady'),
      );
      for (const name of ['sleeper', 'steady'])
        await agents.waitForReason(name, name === 'sleeper' ? 'Idle' : 'Running');
    });

    /** Sends a message while the agent has no pod, starts the agent, and asserts that the reply is sent once. */
    async function assertAnsweredOnce(agent: string, start: () => Promise<void>): Promise<void> {
      await pollAssertion(`the deletion of the pods of ${agent}`, async () =>
        assert.deepEqual(await agents.listPods(agent), []),
      );
      const receipt = await agents.send(agent, 'hello');
      assert.equal(receipt.podBound, false);
      await start();
      await pollAssertion(`the reply of ${agent}`, async () =>
        assert.deepEqual(replies(await agents.sessionLines(agent, receipt.session)), ['heard: hello']),
      );
      assert.equal(await agents.sendAndWait(agent, 'again'), 'heard: again');
      assert.deepEqual(replies(await agents.sessionLines(agent, receipt.session)), ['heard: hello']);
    }

    it('an idle agent is started by a message and replies once', async () => {
      assert.match(await agents.waitForReason('sleeper', 'Idle'), /no message for 3s/);
      await assertAnsweredOnce('sleeper', async () => {});
      // The agent may be scaled to zero again.
      await agents.waitForReason('sleeper', 'Idle');
    });

    it('a suspended agent keeps its messages and replies once after resume', async () => {
      await agents.patchSpec('steady', { suspend: true });
      assert.match(await agents.waitForReason('steady', 'Suspended', 'Active'), /spec\.suspend/);
      await assertAnsweredOnce('steady', async () => {
        assert.equal((await agents.temper('resume', 'steady', '--wait', '60s')).code, 0);
        await agents.waitForReason('steady', 'Running');
      });
    });

    it('an agent under a kill switch keeps its messages and replies once after resume', async () => {
      assert.equal((await agents.temper('suspend', '--policy', 'policy')).code, 0);
      for (const name of ['sleeper', 'steady']) {
        assert.match(await agents.waitForReason(name, 'Suspended', 'Active'), /kill switch of TrustPolicy "policy"/);
      }
      await pollAssertion('the deletion of all pods', async () => assert.deepEqual(await agents.listPods(), []));
      await assertAnsweredOnce('steady', async () => {
        assert.equal((await agents.temper('resume', '--policy', 'policy')).code, 0);
      });
    });
  });
}
