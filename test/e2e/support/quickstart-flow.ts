import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse, stringify } from 'yaml';
import { independentMonth } from '../../../manifests/quickstart/independent.ts';
import { type InstalledCluster, ROOT } from './installed-cluster.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { readSessionLines } from './session-lines.ts';

/* Sends the question of the quick start and disrupts the cluster while the agent works on it. */

export const NAMESPACE = 'quickstart';
const QUESTION = 'How many orders were paid in April, and what were they worth?';
const DELAY_MS = 150;
/** The tools that the agent forges, by name. */
const TOOLS = ['csv_rows', 'revenue_by_region', 'sum_paid_orders'];

interface ReplayRule {
  readonly when?: { readonly system?: string };
  readonly answer: { delayMilliseconds?: number };
}

/** The replay script of the quick start with a delay before each response, so that a disruption can hit the middle of the run. */
export async function slowReplayScript(change: (rules: ReplayRule[]) => object[]): Promise<string> {
  const script = parse(await readFile(join(ROOT, 'manifests/quickstart/replay.yaml'), 'utf8')) as {
    rules: ReplayRule[];
  };
  for (const { answer } of script.rules) answer.delayMilliseconds = DELAY_MS;
  return stringify({ ...script, rules: change(script.rules) });
}

/** Runs the quick start once, disrupts it after `line` printed lines, and asserts the complete result. */
export async function assertCompletes(
  cluster: InstalledCluster,
  line: number,
  disrupt: () => Promise<void>,
): Promise<void> {
  await assertComplete(cluster, await runQuickstart(cluster, line, disrupt));
}

async function assertComplete(cluster: InstalledCluster, { session, printed, code }: QuickstartRun): Promise<void> {
  const transcript = printed.join('\n');
  assert.equal(code, 0, transcript);
  const { orders } = await independentMonth(join(ROOT, 'manifests/quickstart/data/orders-2026-04.csv'));
  const answers = printed.filter((text) => text.startsWith('◂ analyst:'));
  assert.equal(answers.length, 1, transcript);
  assert.ok(answers[0]?.includes(`${orders} orders were paid in April`), transcript);
  const { kubeconfig } = cluster.node;
  const lines = await readSessionLines(kubeconfig, { namespace: NAMESPACE, agent: 'analyst', session });
  assert.equal(lines.filter(({ kind }) => kind === 'reply').length, 1, JSON.stringify(lines));
  assert.equal(lines.filter(({ kind }) => kind === 'failed').length, 0, JSON.stringify(lines));
  const tools = await cluster.temper('top', 'tools', 'analyst', '-n', NAMESPACE, '--output', 'json');
  const made = jsonLines<{ name: string; session: string }>(tools.stdout).filter((tool) => tool.session === session);
  assert.deepEqual(made.map(({ name }) => name).sort(), TOOLS, tools.stdout);
}

export interface QuickstartRun {
  session: string;
  printed: string[];
  code: number;
}

/** Runs the quick start once. Calls `disrupt` after `line` printed lines, or at once for 0. */
export async function runQuickstart(
  cluster: InstalledCluster,
  line: number,
  disrupt: () => Promise<void>,
): Promise<QuickstartRun> {
  const program = join(ROOT, 'bin/kubectl-temper');
  const { kubeconfig } = cluster.node;
  const env = { PATH: process.env['PATH'] ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig };
  const child = spawn(program, ['send', 'analyst', QUESTION, '--follow', '-n', NAMESPACE], { env });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data.toString('utf8')));
  const ended = once(child, 'close') as Promise<[number]>;
  const printed: string[] = [];
  let disrupting = line === 0 ? disrupt() : undefined;
  for await (const text of createInterface({ input: child.stdout })) {
    printed.push(text);
    if (printed.length === line) disrupting = disrupt();
  }
  const [code] = await ended;
  assert.ok(disrupting !== undefined, `only ${printed.length} lines were printed:\n${printed.join('\n')}\n${errors}`);
  await disrupting;
  const session = /session (\S+)/.exec(errors)?.[1] ?? '';
  return { session, printed: [...printed, ...(code === 0 ? [] : [errors])], code };
}
