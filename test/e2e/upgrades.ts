import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, policyObject } from './scene.ts';

const NAMESPACE = 'upgraded';
const NAMES = Array.from({ length: 20 }, (_, index) => `agent-${String(index + 1).padStart(2, '0')}`);
/** Twenty pods that start at once on two processors take their time. */
const PATIENCE_MS = 240_000;
const AT_ONCE = 5;

/** What an upgrade does to agents that run. `upgrade` has the values of the installation already. */
export function upgrades(installation: () => Installation, upgrade: (...more: string[]) => Promise<string>): void {
  describe('helm upgrade with twenty agents that run', () => {
    let agents: Agents;
    const podUids = async () => (await agents.pods()).map(({ metadata }) => metadata.uid).toSorted();

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      await installation().apply(namespaceObject(NAMESPACE));
      await installation().apply(policyObject(NAMESPACE));
      // A node of two processors starts some at a time well, and all of them badly.
      for (let from = 0; from < NAMES.length; from += AT_ONCE) {
        const some = NAMES.slice(from, from + AT_ONCE);
        await installation().apply(...some.map((name) => agentObject(NAMESPACE, name)));
        for (const name of some) await agents.until(name, 'Running', 'Ready', PATIENCE_MS);
      }
    });

    it('that changes operator and gateway alone restarts no agent', async () => {
      const before = await podUids();
      assert.equal(before.length, NAMES.length);
      await upgrade('--set', 'operator.logLevel=debug', '--set', 'gateway.logLevel=debug');
      assert.equal(await agents.ask('agent-01', 'hello'), 'heard: hello');
      for (const name of NAMES) await agents.until(name, 'Running');
      assert.deepEqual(await podUids(), before);
      const restarts = (await agents.pods()).flatMap(({ status }) => status.containerStatuses ?? []);
      assert.ok(restarts.every(({ restartCount }) => restartCount === 0));
    });

    it('that changes what agents are made from replaces every pod, and loses no message', async () => {
      const before = await podUids();
      const upgrading = upgrade('--set', 'agent.resources.cpu=21m');
      const asked = NAMES.slice(0, 5).map((name) => agents.ask(name, `slowly ${name}`));
      await upgrading;
      await eventually(async () => {
        const now = await podUids();
        assert.deepEqual(
          now.filter((uid) => before.includes(uid)),
          [],
        );
      }, PATIENCE_MS);
      for (const name of NAMES) await agents.until(name, 'Running', 'Ready', PATIENCE_MS);
      assert.deepEqual(
        await Promise.all(asked),
        NAMES.slice(0, 5).map((name) => `heard: slowly ${name}`),
      );
      assert.equal((await podUids()).length, NAMES.length);
      assert.equal(await agents.ask('agent-20', 'hello'), 'heard: hello');
    });
  });
}
