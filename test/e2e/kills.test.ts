import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { independentMonth } from '../../manifests/quickstart/independent.ts';
import { type Installation, ROOT, startInstallation } from './installation.ts';
import { linesOf } from './people.ts';

const QUESTION = 'How many orders were paid in April, and what were they worth?';
/** Each part of the story takes this much longer, so that there is a middle to be hit. */
const DELAY_MILLISECONDS = 150;
const TIMES = Number(process.env['TIMES'] ?? 3);
const NAMESPACE = 'quickstart';
/** The tools of the story, by name. */
const TOOLS = ['csv_rows', 'revenue_by_region', 'sum_paid_orders'];
/** What is killed, by words of its command line that no other process of the node has. */
const VICTIMS = {
  operator: 'src/cli/main.ts serve operator',
  gateway: 'src/cli/main.ts serve gateway',
  'nats-server': '/nats-server --config',
  'the agent container': 'src/cli/main.ts serve agent',
  'the sandbox container': 'src/cli/main.ts serve sandbox',
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

  it('gave up no message, and has one pod that is ready', async () => {
    const letters = await installation.temper('deadletters', '-n', NAMESPACE, '--output', 'json');
    assert.equal(letters.stdout, '', letters.stdout);
    await installation.waitFor('agent/analyst', 'Ready', NAMESPACE);
    const pods = await installation.kubectl('get', 'pods', '-n', NAMESPACE, '-o', 'name');
    assert.equal(pods.trim().split('\n').length, 1, pods);
  });
});

async function slowScript(): Promise<string> {
  const script = parse(await readFile(join(ROOT, 'manifests/quickstart/replay.yaml'), 'utf8')) as {
    rules: { answer: { delayMilliseconds?: number } }[];
  };
  for (const { answer } of script.rules) answer.delayMilliseconds = DELAY_MILLISECONDS;
  return stringify(script);
}

/** Tells the story once, strikes after so many lines of it, and looks at what came of it. */
async function endsTheSame(installation: Installation, line: number, strike: () => Promise<void>): Promise<void> {
  const { session, printed, code } = await tell(installation, line, strike);
  const story = printed.join('\n');
  assert.equal(code, 0, story);
  const { orders } = await independentMonth(join(ROOT, 'manifests/quickstart/data/orders-2026-04.csv'));
  const answers = printed.filter((text) => text.startsWith('◂ analyst:'));
  assert.equal(answers.length, 1, story);
  assert.ok(answers[0]?.includes(`${orders} orders were paid in April`), story);
  const { kubeconfig } = installation.node;
  const lines = await linesOf(kubeconfig, { namespace: NAMESPACE, agent: 'analyst', session });
  assert.equal(lines.filter(({ kind }) => kind === 'reply').length, 1, JSON.stringify(lines));
  assert.equal(lines.filter(({ kind }) => kind === 'failed').length, 0, JSON.stringify(lines));
  const tools = await installation.temper('top', 'tools', 'analyst', '-n', NAMESPACE, '--output', 'json');
  const made = jsonLines<{ name: string; session: string }>(tools.stdout).filter((tool) => tool.session === session);
  assert.deepEqual(made.map(({ name }) => name).sort(), TOOLS, tools.stdout);
}

interface Told {
  session: string;
  printed: string[];
  code: number;
}

async function tell(installation: Installation, line: number, strike: () => Promise<void>): Promise<Told> {
  const program = join(ROOT, 'bin/kubectl-temper');
  const { kubeconfig } = installation.node;
  const env = { PATH: process.env['PATH'] ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig };
  const child = spawn(program, ['send', 'analyst', QUESTION, '--follow', '-n', NAMESPACE], { env });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data.toString('utf8')));
  const ended = once(child, 'close') as Promise<[number]>;
  const printed: string[] = [];
  let striking: Promise<void> | undefined;
  for await (const text of createInterface({ input: child.stdout })) {
    printed.push(text);
    if (printed.length === line) striking = strike();
  }
  const [code] = await ended;
  assert.ok(striking !== undefined, `the story had ${printed.length} lines:\n${printed.join('\n')}\n${errors}`);
  await striking;
  const session = /session (\S+)/.exec(errors)?.[1] ?? '';
  return { session, printed: [...printed, ...(code === 0 ? [] : [errors])], code };
}

/** All processes of the node whose command line has the words, at once. */
async function kill({ node }: Installation, words: string): Promise<void> {
  const table = await node.onNode('ps', '-eo', 'pid,args');
  const found = table.split('\n').filter((row) => row.includes(words));
  const pids = found.map((row) => row.trim().split(/\s+/)[0] ?? '');
  assert.ok(pids.length > 0, `${words} does not run:\n${table}`);
  await node.onNode('kill', '-9', ...pids);
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

function jsonLines<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
