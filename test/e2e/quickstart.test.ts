import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dollars, independentMonth } from '../../manifests/quickstart/independent.ts';
import { type Installation, ROOT, startInstallation } from './installation.ts';

const QUESTION =
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?';
const PAGE = join(ROOT, 'docs/quickstart.md');
const skip = process.env['TEMPER_E2E_KUBECONFIG'] === undefined ? false : 'a cluster is given';

describe('the quick start on an empty cluster', { skip, timeout: 900_000 }, () => {
  let installation: Installation;

  before(async () => {
    installation = await startInstallation();
  });

  after(async () => {
    await installation?.[Symbol.asyncDispose]();
  });

  it('is installed by helm, and the tests of the chart pass', async () => {
    const told = await installation.helm('test', 'temper');
    assert.match(told, /Phase: +Succeeded/);
    assert.doesNotMatch(told, /Phase: +Failed/);
  });

  it('forges, tests, is judged and uses the tools in the turn that needs them', async () => {
    await installation.kubectl('apply', '-k', join(ROOT, 'manifests/quickstart'));
    await installation.waitFor('agent/analyst', 'Ready', 'quickstart');
    const { code, stdout, stderr } = await installation.temper(
      'send',
      'analyst',
      QUESTION,
      '--follow',
      '-n',
      'quickstart',
    );
    assert.equal(code, 0, stderr);
    const { orders, revenue } = await independentMonth(ordersOf('04'));
    assert.ok(stdout.endsWith(`◂ analyst: ${orders} orders were paid in April, worth ${dollars(revenue)}.\n`), stdout);
    for (const gate of ['build', 'tests 3/3', 'policy ✓', 'judge', 'register Session ✓', 'tests 1/2 ✗']) {
      assert.ok(stdout.includes(gate), `${gate} in ${stdout}`);
    }
    await holdPage(stdout);
  });

  it('goes on in the session, with the tools it made there', async () => {
    const sessions = await installation.temper('sessions', 'analyst', '-n', 'quickstart', '--output', 'json');
    const { session } = JSON.parse(sessions.stdout) as { session: string };
    const place = ['--session', session, '--follow', '-n', 'quickstart'];
    const { code, stdout, stderr } = await installation.temper('send', 'analyst', 'And in May and June?', ...place);
    assert.equal(code, 0, stderr);
    assert.ok(!stdout.includes('in April'), stdout);
    const months = await Promise.all(['05', '06'].map((month) => independentMonth(ordersOf(month))));
    for (const { orders, revenue } of months) {
      assert.ok(stdout.includes(`${orders} paid orders, ${dollars(revenue)}`), stdout);
    }
  });
});

function ordersOf(month: string): string {
  return join(ROOT, `manifests/quickstart/data/orders-2026-${month}.csv`);
}

/** What the page shows is what was printed, but for what differs from run to run. */
async function holdPage(transcript: string): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  const [head = '', , rest = ''] = page.split(/(?<=<!-- transcript -->\n```\n)|(?=```\n<!-- end -->)/);
  const made = `${head}${transcript}${rest}`;
  if (process.env['UPDATE_GOLDEN'] !== undefined) return writeFile(PAGE, made);
  const steady = (text: string): string => text.replaceAll(/measured \d+ ms(?: · [\d.]+ MiB)?/g, 'measured');
  assert.equal(steady(page), steady(made), 'UPDATE_GOLDEN=1 takes the transcript into docs/quickstart.md');
}
