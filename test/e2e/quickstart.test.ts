import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dollars, independentMonth } from '../../manifests/quickstart/independent.ts';
import { NAMESPACE, rebuiltFromGit, replayScript } from './suites/rebuilt-from-git.ts';
import { samples } from './suites/samples/samples.ts';
import { toolLife } from './suites/tools/tool-life.ts';
import { GitHost } from './support/git-host.ts';
import { type InstalledCluster, replaceNode, ROOT, startClusterWithImages } from './support/installed-cluster.ts';

const QUESTION =
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?';
const PAGE = join(ROOT, 'docs/quickstart.md');
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'TEMPER_E2E_KUBECONFIG is set';

describe('the quick start on an empty cluster', { skip, timeout: 1_500_000 }, () => {
  let cluster: InstalledCluster;
  let host: GitHost;

  async function install(): Promise<void> {
    const script = join(dirname(cluster.node.kubeconfig), 'replay.yaml');
    await writeFile(script, await replayScript());
    const connection = await host.connect(cluster, [NAMESPACE]);
    const webhooks = ['--set', 'gateway.webhooks.enabled=true'];
    await cluster.install('--set-file', `replay.script=${script}`, ...webhooks, ...connection);
  }

  before(async () => {
    host = await GitHost.start();
    cluster = await startClusterWithImages();
    await install();
  });

  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
  });

  it('helm installs the chart, and the chart tests pass', async () => {
    const output = await cluster.helm('test', 'temper');
    assert.match(output, /Phase: +Succeeded/);
    assert.doesNotMatch(output, /Phase: +Failed/);
  });

  it('the agent forges tools, they pass tests and judge, and it uses them in the same turn', async () => {
    await cluster.kubectl('apply', '-k', join(ROOT, 'manifests/quickstart'));
    await cluster.waitFor('agent/analyst', 'Ready', 'quickstart');
    const { code, stdout, stderr } = await cluster.temper('send', 'analyst', QUESTION, '--follow', '-n', 'quickstart');
    assert.equal(code, 0, `${stdout}${stderr}`);
    const { orders, revenue } = await independentMonth(ordersOf('04'));
    assert.ok(stdout.endsWith(`◂ analyst: ${orders} orders were paid in April, worth ${dollars(revenue)}.\n`), stdout);
    for (const gate of ['build', 'tests 3/3', 'policy ✓', 'judge', 'registration Session ✓', 'tests 1/2 ✗']) {
      assert.ok(stdout.includes(gate), `${gate} in ${stdout}`);
    }
    await assertPageCurrent(stdout);
  });

  it('a second message continues the session with its tools', async () => {
    const sessions = await cluster.temper('sessions', 'analyst', '-n', 'quickstart', '--output', 'json');
    const { session } = JSON.parse(sessions.stdout) as { session: string };
    const sessionFlags = ['--session', session, '--follow', '-n', 'quickstart'];
    const { code, stdout, stderr } = await cluster.temper('send', 'analyst', 'And in May and June?', ...sessionFlags);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.ok(!stdout.includes('in April'), stdout);
    const months = await Promise.all(['05', '06'].map((month) => independentMonth(ordersOf(month))));
    for (const { orders, revenue } of months) {
      assert.ok(stdout.includes(`${orders} paid orders, ${dollars(revenue)}`), stdout);
    }
  });

  toolLife(() => cluster);
  samples(() => cluster);
  rebuiltFromGit(() => cluster, {
    host: () => host,
    rebuild: async () => {
      cluster = await replaceNode(cluster);
      await install();
    },
  });
});

function ordersOf(month: string): string {
  return join(ROOT, `manifests/quickstart/data/orders-2026-${month}.csv`);
}

/** Asserts that the page shows this transcript, except for timings. */
async function assertPageCurrent(transcript: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  const [head = '', , rest = ''] = page.split(/(?<=<!-- transcript -->\n```\n)|(?=```\n<!-- end -->)/);
  const updated = `${head}${transcript}${rest}`;
  if (process.env['UPDATE_GOLDEN'] !== undefined) return writeFile(PAGE, updated);
  const withoutTimings = (text: string): string => text.replaceAll(/resources \d+ ms(?: · [\d.]+ MiB)?/g, 'resources');
  assert.equal(
    withoutTimings(page),
    withoutTimings(updated),
    'UPDATE_GOLDEN=1 writes the transcript into docs/quickstart.md',
  );
}
