// main.ts CONCURRENCY [--group PATTERN]… [PATTERN]…: runs the test files that match as `node --test` does, each in its own process, those of
// --group in groups that share one. Prints what `node --test` prints; the exit code is 1 if a test failed or a file did not finish.
import { existsSync, globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { plannedProcesses, SLOW_FILES, type TestFile } from './plan.ts';

const GROUP_MODULE = join(import.meta.dirname, 'group.ts');
/** Loaded by each process before its files. */
const TIME_LIMIT_MODULE = new URL('time-limit.ts', import.meta.url).href;

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { group: { type: 'string', multiple: true } },
  });
  const [concurrency = '', ...patterns] = positionals;
  const alone = globSync(patterns);
  const grouped = await withSources(globSync(values.group ?? []));
  if (!(Number(concurrency) > 0) || alone.length + grouped.length === 0) {
    throw new Error('usage: main.ts CONCURRENCY [--group PATTERN]… [PATTERN]…, with patterns that match test files');
  }
  const gone = SLOW_FILES.find((file) => !existsSync(resolve(import.meta.dirname, '../..', file)));
  if (gone !== undefined) throw new Error(`${gone} does not exist; remove it from SLOW_FILES in test/runner/plan.ts`);
  const folder = await mkdtemp(join(tmpdir(), 'temper-test-groups-'));
  try {
    await runProcesses(plannedProcesses(alone, grouped), Number(concurrency), folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function withSources(paths: readonly string[]): Promise<readonly TestFile[]> {
  return Promise.all(paths.map(async (path) => ({ path, source: await readFile(path, 'utf8') })));
}

async function runProcesses(
  processes: readonly (readonly string[])[],
  concurrency: number,
  folder: string,
): Promise<void> {
  const groups = await Promise.all(processes.map((files, index) => groupOf(files, join(folder, `group-${index}`))));
  const finished = new Set<string>();
  const execArgv = ['--import', TIME_LIMIT_MODULE];
  const tests = run({ files: groups.map(({ entry }) => entry), concurrency, execArgv });
  const finish = ({ name, nesting }: { name: string; nesting: number }): void => {
    if (nesting === 0) finished.add(name);
  };
  tests.on('test:pass', finish);
  tests.on('test:fail', finish);
  tests.on('test:summary', ({ file, success }) => {
    if (file === undefined && !success) process.exitCode = 1;
  });
  await new Promise<void>((done, fail) => {
    tests.compose(spec).on('end', done).on('error', fail).pipe(process.stdout);
  });
  for (const group of groups) await reportUnfinished(group, finished);
}

/** Files that share a process, and the module that the process starts with. */
interface Group {
  readonly files: readonly string[];
  readonly entry: string;
  /** Contains the name of the file that runs; undefined for a file that runs alone, which the test runner reports itself. */
  readonly progress?: string;
}

async function groupOf(files: readonly string[], path: string): Promise<Group> {
  const absolute = files.map((file) => resolve(file));
  if (absolute.length === 1) return { files, entry: absolute.join('') };
  const [entry, progress] = [`${path}.mjs`, `${path}.progress`];
  const [module, list, current] = [GROUP_MODULE, absolute, progress].map((value) => JSON.stringify(value));
  await writeFile(entry, `import { runGroup } from ${module};\nawait runGroup(${list}, ${current});\n`);
  return { files, entry, progress };
}

/** A process that ended in the middle leaves files of its group without a result. */
async function reportUnfinished({ files, progress }: Group, finished: ReadonlySet<string>): Promise<void> {
  const unfinished = files.filter((file) => !finished.has(file));
  if (progress === undefined || unfinished.length === 0) return;
  process.exitCode = 1;
  const last = await readFile(progress, 'utf8').catch(() => 'its first file');
  console.log(`\n✖ the process of a group ended while ${last} ran; without a result: ${unfinished.join(', ')}`);
}

await main(process.argv.slice(2));
