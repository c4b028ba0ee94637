import { rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { CliIo } from '../../src/cli/io.ts';
import { run } from '../../src/cli/run/run.ts';
import { dollars, independentAnswer } from './independent.ts';

/**
 * The quick start as one command: a state folder of its own, three questions, and a check of the last answer against an independent
 * computation. Exits 1 when the answer is not right. Options: a folder with other data, to see that the answer follows it.
 */

const QUESTIONS = [
  'The folder data holds our orders, one CSV file a month. How many orders were paid in April, and what were they worth?',
  'And in May and June?',
  "Which region's revenue fell most between the second quarter and the third, and by how much?",
];

const folder = import.meta.dirname;
const workspace = process.argv[2] ?? folder;
/** A folder of its own, so that the demo never touches the state of the user's runs. */
const OWN_STATE = '.temper-demo';
const state = process.argv[3] ?? OWN_STATE;

/** Without a key in the environment the scripted model answers. */
function modelOptions(): { modelScript?: string } {
  const hasKey = Boolean(process.env['OPENAI_API_KEY'] ?? process.env['ANTHROPIC_API_KEY']);
  return hasKey ? {} : { modelScript: join(folder, 'replay.yaml') };
}

async function main(): Promise<number> {
  if (state === OWN_STATE) await rm(state, { recursive: true, force: true });
  let printed = '';
  const io: CliIo = {
    out: (text) => {
      printed += text;
      process.stdout.write(text);
    },
    error: (text) => process.stderr.write(text),
    stdin: () => Promise.resolve(''),
    lines: async function* none() {},
    cwd: process.cwd(),
    environment: process.env,
    terminal: process.stdout.isTTY,
    colour: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
    signal: new AbortController().signal,
    ...(process.stdout.isTTY ? { columns: () => process.stdout.columns } : {}),
  };
  const filename = [join(folder, 'agent.yaml'), join(folder, 'policy.yaml')];
  const code = await run({ filename, message: QUESTIONS, workspace, state, output: 'text', ...modelOptions() }, io);
  if (code !== 0) return code;
  // On a terminal the answer is wrapped.
  return checkAnswer(printed.slice(printed.lastIndexOf('◂')).replaceAll(/\s+/g, ' '));
}

async function checkAnswer(reply: string): Promise<number> {
  const [most] = await independentAnswer(join(workspace, 'data'));
  if (most === undefined) throw new Error('there are no orders to compare');
  const expected = [most.region, dollars(most.before - most.after)];
  const missing = expected.filter((text) => !reply.includes(text));
  if (missing.length > 0) {
    process.stdout.write(
      `✗ the answer lacks ${missing.join(' and ')}, which an independent computation over the same files gives\n`,
    );
    return 1;
  }
  process.stdout.write('✓ checked against an independent computation over the same files\n');
  const folderName = relative(process.cwd(), state) || state;
  process.stdout.write(
    [
      `State: ${folderName}. Look at it:`,
      ...['get tools', 'describe tool csv_rows', 'tool export csv_rows', 'sessions', 'audit'].map(
        (verb) => `  bin/temper ${verb} --state ${folderName}`,
      ),
      '',
    ].join('\n'),
  );
  return 0;
}

process.exitCode = await main();
