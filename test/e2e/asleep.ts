import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, policyObject, replies } from './scene.ts';

const NAMESPACE = 'asleep';

/** Who has no pod, and what becomes of messages meanwhile. */
export function agentsWithoutPods(installation: () => Installation): void {
  describe('an agent without a pod', () => {
    let agents: Agents;

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      await installation().apply(namespaceObject(NAMESPACE));
      await installation().apply(
        policyObject(NAMESPACE),
        agentObject(NAMESPACE, 'sleeper', { idle: { scaleToZeroAfter: '3s' } }),
        agentObject(NAMESPACE, 'steady'),
      );
      for (const name of ['sleeper', 'steady']) await agents.until(name, name === 'sleeper' ? 'Idle' : 'Running');
    });

    /** The message waits with nobody to take it, then is answered, and answered once. */
    async function answersOnceAfter(agent: string, wake: () => Promise<void>): Promise<void> {
      await eventually(async () => assert.deepEqual(await agents.pods(agent), []));
      const receipt = await agents.tell(agent, 'hello');
      assert.equal(receipt.awake, false);
      await wake();
      await eventually(async () =>
        assert.deepEqual(replies(await agents.lines(agent, receipt.session)), ['heard: hello']),
      );
      assert.equal(await agents.ask(agent, 'again'), 'heard: again');
      assert.deepEqual(replies(await agents.lines(agent, receipt.session)), ['heard: hello']);
    }

    it('that fell asleep is woken by a message and answers it once', async () => {
      assert.match(await agents.until('sleeper', 'Idle'), /no message for 3s/);
      await answersOnceAfter('sleeper', async () => {});
      // It may have gone to sleep again.
      await agents.until('sleeper', 'Idle');
    });

    it('that is suspended keeps its messages, and answers them once when it may go on', async () => {
      await agents.spec('steady', { suspend: true });
      assert.match(await agents.until('steady', 'Suspended', 'Active'), /spec\.suspend/);
      await answersOnceAfter('steady', async () => {
        assert.equal((await agents.temper('resume', 'steady', '--wait', '60s')).code, 0);
        await agents.until('steady', 'Running');
      });
    });

    it('whose policy has the kill switch on keeps its messages too', async () => {
      assert.equal((await agents.temper('suspend', '--policy', 'policy')).code, 0);
      for (const name of ['sleeper', 'steady']) {
        assert.match(await agents.until(name, 'Suspended', 'Active'), /kill switch of TrustPolicy "policy"/);
      }
      await eventually(async () => assert.deepEqual(await agents.pods(), []));
      await answersOnceAfter('steady', async () => {
        assert.equal((await agents.temper('resume', '--policy', 'policy')).code, 0);
      });
    });
  });
}
