import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse, stringify } from 'yaml';
import { independentMonth } from '../../manifests/quickstart/independent.ts';
import { type Installation, ROOT } from './installation.ts';
import { linesOf } from './people.ts';

/* The quick start's question, asked on a cluster while something happens to it. */

export const NAMESPACE = 'quickstart';
const QUESTION = 'How many orders were paid in April, and what were they worth?';
const DELAY_MILLISECONDS = 150;
/** The tools of the story, by name. */
const TOOLS = ['csv_rows', 'revenue_by_region', 'sum_paid_orders'];

/** The script of the quick start with time between its answers, so that there is a middle to be hit. */
export async function slowScript(): Promise<string> {
  const script = parse(await readFile(join(ROOT, 'manifests/quickstart/replay.yaml'), 'utf8')) as {
    rules: { answer: { delayMilliseconds?: number } }[];
  };
  for (const { answer } of script.rules) answer.delayMilliseconds = DELAY_MILLISECONDS;
  return stringify(script);
}

/** Tells the story once, strikes after so many lines of it, and looks at what came of it. */
export async function endsTheSame(
  installation: Installation,
  line: number,
  strike: () => Promise<void>,
): Promise<void> {
  await isRight(installation, await tell(installation, line, strike));
}

async function isRight(installation: Installation, { session, printed, code }: Told): Promise<void> {
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

export interface Told {
  session: string;
  printed: string[];
  code: number;
}

/** `strike` comes after so many lines of what is printed, or at once. */
export async function tell(installation: Installation, line: number, strike: () => Promise<void>): Promise<Told> {
  const program = join(ROOT, 'bin/kubectl-temper');
  const { kubeconfig } = installation.node;
  const env = { PATH: process.env['PATH'] ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig };
  const child = spawn(program, ['send', 'analyst', QUESTION, '--follow', '-n', NAMESPACE], { env });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data.toString('utf8')));
  const ended = once(child, 'close') as Promise<[number]>;
  const printed: string[] = [];
  let striking = line === 0 ? strike() : undefined;
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

function jsonLines<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}
