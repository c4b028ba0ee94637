import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { POD_PATHS } from '../../../src/api/cluster.ts';
import type { UsageBreakdown } from '../../../src/gateway-api/user-api.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { pollAssertion, pollValue } from '../../support/poll.ts';
import { runInPod } from '../support/in-pod.ts';
import { NamespaceAgents, agentObject, namespaceObject, policyObject, replies } from '../support/fixture.ts';

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
          grants: { tools: ['file_read', 'file_write'] },
        });
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(
        policyObject(NAMESPACE, { tools: { allow: ['file_read', 'file_write'] } }),
        withProgram('helped', 'fixture'),
        withProgram('unlisted', 'other'),
      );
    });

    it('a program in the image of the platform answers with the model of its agent', async () => {
      await agents.waitForReason('helped', 'Running', 'Ready', 120_000);
      assert.match(await agents.sendAndWait('helped', 'hello'), /^heard: [^]*You are helped\.[^]*hello$/);
      assert.match(await agents.sendAndWait('helped', '!listed'), /\bfile_read\b/);
    });

    it('its calls go through the policy of its agent, and it is charged for what was served', async () => {
      const { id, session } = await agents.send('helped', 'use your tools');
      const lines = await pollValue(
        'the reply of helped',
        () => agents.sessionLines('helped', session),
        (seen) => replies(seen).length > 0,
      );
      assert.match(replies(lines).join(), /^done: .*TEMPER_/);
      const events = lines.flatMap((line) => (line.kind === 'event' ? [line.event] : []));
      assert.deepEqual(
        events.flatMap((event) => (event.type === 'tool-result' ? [[event.tool, event.code ?? 'ok']] : [])),
        [
          ['file_write', 'ok'],
          ['file_read', 'ok'],
          ['file_read', 'TEMPER_POLICY_DENIED'],
          ['agent_send', 'TEMPER_POLICY_DENIED'],
        ],
      );
      await pollAssertion('the charges of the message', async () => {
        const { stdout } = await agents.temper('usage', 'helped', '--by', 'root', '-o', 'json');
        const charged = jsonLines<UsageBreakdown['rows'][number]>(stdout).find(({ name }) => name === id);
        const { calls, inputTokens, outputTokens } = charged ?? {};
        assert.deepEqual({ calls, inputTokens, outputTokens }, { calls: 2, inputTokens: 10_000, outputTokens: 100 });
      });
    });

    it('the program reaches nothing but its pipe, and writes in its home alone', async () => {
      const reply = await agents.sendAndWait('helped', '!probe');
      const probed = JSON.parse(reply) as Record<string, string>;
      assert.equal(probed['home'], 'works', reply);
      for (const what of ['fetch', 'socket', 'process', 'read', 'write'])
        assert.notEqual(probed[what], 'works', `${what}: ${reply}`);
      assert.doesNotMatch(probed['environment'] ?? '', /TOKEN|KUBERNETES/);
    });

    it('a program that crashes, says too much or fills its home harms its own message alone', async () => {
      const before = await agents.boundPod('helped');
      const inSession = ['--session', 'hostile', '--follow', '-o', 'json'];
      const filled = await agents.temper('send', 'helped', '!fill', ...inSession);
      assert.deepEqual(replies(jsonLines(filled.stdout)), ['ENOSPC'], filled.stderr);
      assert.equal(await agents.sendAndWait('helped', '!prompts'), 'prompt 1', 'beside a full home');
      for (const command of ['!crash', '!flood']) {
        const { stdout } = await agents.temper('send', 'helped', command, ...inSession);
        assert.match(replies(jsonLines(stdout)).join(), /^\[TEMPER_ACP_AGENT_FAILED: /);
        assert.equal(await agents.sendAndWait('helped', '!prompts'), 'prompt 1', `after ${command}`);
      }
      const list = `
        import { readdirSync } from 'node:fs';
        const homes = readdirSync('${POD_PATHS.programHomes}').flatMap((number) => {
          const volume = '${POD_PATHS.programHomes}/' + number + '/';
          return readdirSync(volume).flatMap((home) => readdirSync(volume + home));
        });
        console.log(JSON.stringify(homes.filter((name) => /^(closed|part-)/.test(name))));
      `;
      assert.deepEqual(await runInPod(cluster().node, before, 'sandbox', list), [], 'no home outlives its process');
      const pod = await agents.boundPod('helped');
      assert.equal(pod.metadata.uid, before.metadata.uid);
      assert.deepEqual(
        pod.status.containerStatuses?.map(({ restartCount }) => restartCount),
        [0, 0],
      );
    });

    it('an agent whose program never answers can be deleted, with its pod', async () => {
      await agents.send('helped', '!hang');
      await cluster().kubectl('delete', 'agent', 'helped', '-n', NAMESPACE, '--timeout=120s');
      await pollAssertion(
        'the deletion of the pod',
        async () => assert.deepEqual(await agents.listPods('helped'), []),
        { timeoutMs: 120_000 },
      );
    });

    it('an agent that names a program which the platform does not list has a condition with those that it does', async () => {
      assert.match(
        await agents.waitForReason('unlisted', 'InvalidSpec'),
        /program "other" does not exist; use one of "fixture"$/,
      );
    });
  });
}
