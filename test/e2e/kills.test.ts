import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Installation, ROOT, startInstallation, volumeOf } from './installation.ts';
import { eventually } from './scene.ts';
import { endsTheSame, NAMESPACE, slowScript, tell } from './story.ts';

/** Spend is folded into the status each minute. */
const FOLDED_MILLISECONDS = 150_000;
const TIMES = Number(process.env['TIMES'] ?? 3);
/** What is killed, by words of its command line that no other process of the node has. */
const VICTIMS = {
  operator: 'temper.mjs serve operator',
  gateway: 'temper.mjs serve gateway',
  'nats-server': '/nats-server --config',
  'the agent container': 'temper.mjs serve agent',
  'the sandbox container': 'sandbox.mjs serve sandbox',
} as const;
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'a cluster is given';

describe('the quick start while its parts are killed', { skip, timeout: 300_000 + TIMES * 300_000 }, () => {
  let installation: Installation;

  before(async () => {
    installation = await startInstallation();
    const script = join(dirname(installation.node.kubeconfig), 'slow-replay.yaml');
    await writeFile(script, await slowScript());
    await installation.upgrade('--set-file', `replay.script=${script}`);
    await installation.kubectl('apply', '-k', join(ROOT, 'manifests/quickstart'));
    await installation.waitFor('agent/analyst', 'Ready', NAMESPACE);
  });

  after(async () => {
    await installation?.[Symbol.asyncDispose]();
  });

  for (const [name, words] of Object.entries(VICTIMS)) {
    it(`ends the same when ${name} is killed in the middle, ${TIMES} times`, async () => {
      for (let time = 0; time < TIMES; time += 1) {
        // It may still be on its way back from the time before.
        await eventually(async () => void (await pidsOf(installation, words)));
        // Spread over the story: after the first lines, in the middle, near the end.
        const line = 2 + Math.floor(((time + 0.5) * 18) / TIMES);
        await endsTheSame(installation, line, () => kill(installation, words));
      }
    });
  }

  it(`ends the same when the pod of the agent is evicted in the middle, ${TIMES} times`, async () => {
    for (let time = 0; time < TIMES; time += 1) {
      const line = 2 + Math.floor(((time + 0.5) * 18) / TIMES);
      await endsTheSame(installation, line, () => evict(installation));
    }
  });

  it('says what was lost with the store of the bus, goes on without it, and counts on from what was spent', async () => {
    await endsTheSame(installation, 0, () => Promise.resolve());
    const spent = await tokensOf(installation, (tokens) => tokens > 0);
    const { code, printed } = await tell(installation, 8, () => loseStore(installation));
    assert.equal(code, 1, printed.join('\n'));
    assert.match(printed.join('\n'), /✗ TEMPER_BUS_STORE_LOST: .*send it again/);
    await endsTheSame(installation, 0, () => Promise.resolve());
    await tokensOf(installation, (tokens) => tokens > spent);
    const policy = await installation.kubectl('describe', 'trustpolicy', '-n', NAMESPACE);
    assert.match(policy, /Warning +BusStoreLost .*messages, sessions, session tools and memories .* are gone/);
  });

  it('says whose messages waited when the store was lost', async () => {
    await installation.temper('suspend', 'analyst', '-n', NAMESPACE);
    const waiting = tell(installation, 0, () => Promise.resolve());
    await eventually(async () => {
      const queue = await installation.kubectl(
        'get',
        'agent',
        'analyst',
        '-n',
        NAMESPACE,
        '-o',
        'jsonpath={.status.queue}',
      );
      assert.equal(queue, '1');
    });
    await loseStore(installation);
    const { code, printed } = await waiting;
    assert.equal(code, 1);
    assert.match(printed.join('\n'), /✗ TEMPER_BUS_STORE_LOST: .*send it again/);
    await eventually(async () => {
      const agent = await installation.kubectl('describe', 'agent', 'analyst', '-n', NAMESPACE);
      assert.match(agent, /Warning +MessagesLost .*1 message that waited or was being worked on is gone; send again/);
    });
    await installation.temper('resume', 'analyst', '-n', NAMESPACE);
    await endsTheSame(installation, 0, () => Promise.resolve());
  });

  it('gave up no message, and has one pod that is ready', async () => {
    const letters = await installation.temper('deadletters', '-n', NAMESPACE, '--output', 'json');
    assert.equal(letters.stdout, '', letters.stdout);
    await installation.waitFor('agent/analyst', 'Ready', NAMESPACE);
    const pods = await installation.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'name');
    assert.equal(pods.trim().split('\n').length, 1, pods);
  });
});

/** All of them at once. */
async function kill(installation: Installation, words: string): Promise<void> {
  await installation.node.onNode('kill', '-9', ...(await pidsOf(installation, words)));
}

/** The processes of the node whose command line has the words, at least one. */
async function pidsOf({ node }: Installation, words: string): Promise<string[]> {
  const table = await node.onNode('ps', '-eo', 'pid,args');
  const found = table.split('\n').filter((row) => row.includes(words));
  assert.ok(found.length > 0, `${words} does not run:\n${table}`);
  return found.map((row) => row.trim().split(/\s+/)[0] ?? '');
}

/** Nobody but the operator deletes pods in a fenced namespace, and anybody who may drain a node evicts them. */
async function evict({ node }: Installation): Promise<void> {
  const name = await node.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'jsonpath={.items[0].metadata.name}');
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
  const { status, body: answer } = await node.admin.call('POST', path, {
    body: { ...body, deleteOptions: { gracePeriodSeconds: 0 } },
  });
  assert.equal(status, 201, JSON.stringify(answer));
}

/** As when the disk is replaced under the server: stopped, so that it writes nothing back. */
async function loseStore(installation: Installation): Promise<void> {
  const { node } = installation;
  const [pid = ''] = await pidsOf(installation, VICTIMS['nats-server']);
  await node.onNode('kill', '-STOP', pid);
  await node.onNode('find', volumeOf(node), '-mindepth', '1', '-delete');
  await node.onNode('kill', '-9', pid);
}

/** Tokens of this day that the status of the policy says were spent, once they are right. */
async function tokensOf(installation: Installation, isRight: (tokens: number) => boolean): Promise<number> {
  const path = 'jsonpath={.items[0].status.spend[?(@.window=="day")].inputTokens}';
  let tokens = 0;
  await eventually(async () => {
    tokens = Number(await installation.kubectl('get', 'trustpolicy', '-n', NAMESPACE, '-o', path));
    assert.ok(isRight(tokens), `${tokens} tokens`);
  }, FOLDED_MILLISECONDS);
  return tokens;
}
