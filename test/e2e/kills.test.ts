import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type InstalledCluster, ROOT, startInstalledCluster, natsVolume } from './support/installed-cluster.ts';

import { kill, pidsOf, PROCESSES } from './support/kills.ts';
import { killedTeam, teamRules } from './suites/killed-team.ts';
import { killedWalks, walkRules } from './suites/killed-walks.ts';
import { assertCompletes, NAMESPACE, slowReplayScript, runQuickstart } from './support/quickstart-flow.ts';
import { pollAssertion } from '../support/poll.ts';

/** The operator writes the spend into the status once per minute. */
const SPEND_TIMEOUT_MS = 150_000;
const TIMES = Number(process.env['TIMES'] ?? 2);
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'TEMPER_E2E_KUBECONFIG is set';

describe('the quick start while components are killed', { skip, timeout: 600_000 + TIMES * 600_000 }, () => {
  let cluster: InstalledCluster;

  before(async () => {
    cluster = await startInstalledCluster();
    const script = join(dirname(cluster.node.kubeconfig), 'slow-replay.yaml');
    await writeFile(script, await slowReplayScript((rules) => [...teamRules(), ...walkRules(rules)]));
    await cluster.upgrade('--set-file', `replay.script=${script}`);
    await cluster.kubectl('apply', '-k', join(ROOT, 'manifests/quickstart'));
    await cluster.waitFor('agent/analyst', 'Ready', NAMESPACE);
  });

  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  killedTeam(() => cluster, Number(process.env['TIMES'] ?? 1));
  killedWalks(() => cluster, Number(process.env['TIMES'] ?? 1));

  for (const [name, words] of Object.entries(PROCESSES)) {
    it(`the quick start completes when ${name} is killed, ${TIMES} times`, async () => {
      for (let time = 0; time < TIMES; time += 1) {
        // The process may still be restarting after the previous kill.
        await pollAssertion(`a process with ${words}`, async () => void (await pidsOf(cluster, words)));
        // At points that are spread over the run.
        const line = 2 + Math.floor(((time + 0.5) * 18) / TIMES);
        await assertCompletes(cluster, line, () => kill(cluster, words));
      }
    });
  }

  it(`the quick start completes when the agent's pod is evicted, ${TIMES} times`, async () => {
    for (let time = 0; time < TIMES; time += 1) {
      const line = 2 + Math.floor(((time + 0.5) * 18) / TIMES);
      await assertCompletes(cluster, line, () => evict(cluster));
    }
  });

  it('a lost NATS store is reported, the agent continues without it, and the spend keeps counting', async () => {
    await assertCompletes(cluster, 0, () => Promise.resolve());
    const spent = await waitForTokens(cluster, (tokens) => tokens > 0);
    const { code, printed } = await runQuickstart(cluster, 8, () => loseStore(cluster));
    assert.equal(code, 1, printed.join('\n'));
    assert.match(printed.join('\n'), /✗ TEMPER_NATS_DATA_LOST: .*send the message again/);
    await assertCompletes(cluster, 0, () => Promise.resolve());
    await waitForTokens(cluster, (tokens) => tokens > spent);
    const policy = await cluster.kubectl('describe', 'trustpolicy', '-n', NAMESPACE);
    assert.match(policy, /Warning +NATSDataLost .*messages, sessions, session tools and memories .* are lost/);
  });

  it('a lost NATS store is reported on agents with queued messages', async () => {
    // Without the wait, a pod that has not yet ended may take the first message.
    assert.equal((await cluster.temper('suspend', 'analyst', '-n', NAMESPACE, '--wait', '180s')).code, 0);
    // For an agent without a pod the status shows at once that a message starts to wait, and other numbers within minutes only.
    await waitForQueue(cluster, /^0?$/);
    const waiting = runQuickstart(cluster, 0, () => Promise.resolve());
    await waitForQueue(cluster, /^1$/);
    await loseStore(cluster);
    const { code, printed } = await waiting;
    assert.equal(code, 1);
    assert.match(printed.join('\n'), /✗ TEMPER_NATS_DATA_LOST: .*send the message again/);
    await pollAssertion('the Event about the lost message', async () => {
      const agent = await cluster.kubectl('describe', 'agent', 'analyst', '-n', NAMESPACE);
      assert.match(
        agent,
        /Warning +MessagesLost .*: 1 message that was waiting or in progress is lost; send unanswered messages again/,
      );
    });
    await cluster.temper('resume', 'analyst', '-n', NAMESPACE);
    await assertCompletes(cluster, 0, () => Promise.resolve());
  });

  it('no message was dead-lettered, and the agent has one ready pod', async () => {
    const letters = await cluster.temper('deadletters', '-n', NAMESPACE, '--output', 'json');
    assert.equal(letters.stdout, '', letters.stdout);
    await cluster.waitFor('agent/analyst', 'Ready', NAMESPACE);
    const pods = await cluster.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'name');
    assert.equal(pods.trim().split('\n').length, 1, pods);
  });
});

/** Evicts the agent's pod. In a protected namespace only the operator can delete pods, but evictions are allowed. */
async function evict({ node }: InstalledCluster): Promise<void> {
  const name = await node.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'jsonpath={.items[0].metadata.name}');
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
  const { status, body: answer } = await node.admin.call('POST', path, {
    body: { ...body, deleteOptions: { gracePeriodSeconds: 0 } },
  });
  assert.equal(status, 201, JSON.stringify(answer));
}

/** Deletes the store while nats-server is stopped, so that it writes nothing back, then kills it. */
async function loseStore(cluster: InstalledCluster): Promise<void> {
  const { node } = cluster;
  const [pid = ''] = await pidsOf(cluster, PROCESSES['nats-server']);
  await node.onNode('kill', '-STOP', pid);
  await node.onNode('find', natsVolume(node), '-mindepth', '1', '-delete');
  await node.onNode('kill', '-9', pid);
}

/** Polls the number of queued messages in the status of the agent until it matches. */
async function waitForQueue(cluster: InstalledCluster, expected: RegExp): Promise<void> {
  await pollAssertion(`a queue of ${expected}`, async () => {
    const queue = await cluster.kubectl('get', 'agent', 'analyst', '-n', NAMESPACE, '-o', 'jsonpath={.status.queue}');
    assert.match(queue, expected);
  });
}

/** Polls the tokens spent today from the status of the policy until they match. */
async function waitForTokens(cluster: InstalledCluster, isRight: (tokens: number) => boolean): Promise<number> {
  const path = 'jsonpath={.items[0].status.spend[?(@.window=="day")].inputTokens}';
  let tokens = 0;
  await pollAssertion(
    'the expected spend',
    async () => {
      tokens = Number(await cluster.kubectl('get', 'trustpolicy', '-n', NAMESPACE, '-o', path));
      assert.ok(isRight(tokens), `${tokens} tokens`);
    },
    { timeoutMs: SPEND_TIMEOUT_MS },
  );
  return tokens;
}
