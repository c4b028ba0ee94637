import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { BenchRow } from '../row.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const DATA = resolve(ROOT, '../shared/data/forge/humaneval-x-js.jsonl');
const ROUNDS = 5;
const LIMIT = 3;

const run = promisify(execFile);

/**
 * `temper tool check` of a file of tools (all gates, every test twice), relative to a bare loop that runs the same tests once. Both are whole
 * processes that run in turn. The fastest round counts, because other load on the machine only adds time.
 */
export async function benchToolCheck(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  try {
    const file = existsSync(DATA) ? DATA : await generatedTools(join(folder, 'tools.jsonl'));
    const rounds: { bare: number; check: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const bare = await timed(join(ROOT, 'bin/node'), [
        '--no-node-snapshot',
        join(ROOT, 'bench/baseline/bare-loop.ts'),
        file,
      ]);
      const check = await timed(join(ROOT, 'bin/temper'), ['tool', 'check', '--output', 'json', file]);
      rounds.push({ bare, check });
    }
    const bare = Math.min(...rounds.map((round) => round.bare));
    const check = Math.min(...rounds.map((round) => round.check));
    const ratio = check / bare;
    const figures = { bare: seconds(bare), 'temper tool check': seconds(check), ratio: ratio.toFixed(2) };
    const tools = (await readFile(file, 'utf8')).trim().split('\n').length;
    const name = `checking ${tools} tools, whole process`;
    return [{ name, figures, limit: `ratio ≤ ${LIMIT}`, met: ratio <= LIMIT }];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function timed(command: string, args: string[]): Promise<number> {
  const started = performance.now();
  await run(command, args, { maxBuffer: 64 * 1_048_576 });
  return performance.now() - started;
}

/** Used when the data set is absent: one sample tool under many names. */
async function generatedTools(file: string): Promise<string> {
  const forge = JSON.parse(await readFile(join(ROOT, 'test/fixtures/forges/convert_temperature.json'), 'utf8')) as {
    implementation: { code: string };
  };
  const lines = Array.from({ length: 200 }, (_, index) =>
    JSON.stringify({ ...forge, name: `tool_${index}`, code: forge.implementation.code, implementation: undefined }),
  );
  await writeFile(file, `${lines.join('\n')}\n`);
  return file;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(2)} s`;
}
