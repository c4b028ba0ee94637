import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, policyObject } from '../support/fixture.ts';

const NAMESPACE = 'programs';

/** Agents whose messages an agent program works on, in the sandbox container of their pods. */
export function agentPrograms(cluster: () => InstalledCluster): void {
  describe('an agent program on a pod', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      const withProgram = (name: string, agent: string) =>
        agentObject(NAMESPACE, name, {
          model: { primary: 'default/default', agent },
          grants: { tools: ['file_read'] },
        });
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(
        policyObject(NAMESPACE, { tools: { allow: ['file_read'] } }),
        withProgram('helped', 'fixture'),
        withProgram('unlisted', 'other'),
      );
    });

    it('a program in the image of the platform answers with the model of its agent', async () => {
      await agents.waitForReason('helped', 'Running', 'Ready', 120_000);
      assert.match(await agents.sendAndWait('helped', 'hello'), /^heard: [^]*You are helped\.[^]*hello$/);
      assert.match(await agents.sendAndWait('helped', '!listed'), /\bfile_read\b/);
    });

    it('the program reaches nothing but its pipe, and writes in its home alone', async () => {
      const reply = await agents.sendAndWait('helped', '!probe');
      const probed = JSON.parse(reply) as Record<string, string>;
      assert.equal(probed['home'], 'works', reply);
      for (const what of ['fetch', 'socket', 'process', 'read', 'write'])
        assert.notEqual(probed[what], 'works', `${what}: ${reply}`);
      assert.doesNotMatch(probed['environment'] ?? '', /TOKEN|KUBERNETES/);
    });

    it('a program that crashes fails its message, and the next message has a new process', async () => {
      await agents.sendAndWait('helped', '!crash').catch(() => undefined);
      assert.match(await agents.sendAndWait('helped', '!prompts'), /^prompt 1$/);
    });

    it('an agent that names a program which the platform does not list has a condition with those that it does', async () => {
      assert.match(
        await agents.waitForReason('unlisted', 'InvalidSpec'),
        /program "other" does not exist; use one of "fixture"$/,
      );
    });
  });
}
