import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import type { BenchRow } from './row.ts';

const ROOT = resolve(import.meta.dirname, '..');
const RUNS = 15;
const MAX_RATIO = 4;
/** On an idle machine; only reported, because a busy one takes longer for both. */
const GOAL_MS = 60;

/** The duration of the process `temper --help`, relative to a Node process that does nothing. */
export async function benchCli(): Promise<BenchRow[]> {
  const help = median(() => spawnSync(resolve(ROOT, 'bin/temper'), ['--help']));
  const bare = median(() => spawnSync(resolve(ROOT, 'bin/node'), ['--eval', '0']));
  const figures = {
    p50: `${help.toFixed(0)} ms`,
    'bare node': `${bare.toFixed(0)} ms`,
    own: `${(help - bare).toFixed(0)} ms`,
    goal: `${GOAL_MS} ms`,
  };
  const limit = `p50 ≤ ${MAX_RATIO} × bare node`;
  return [{ name: 'temper --help, whole process', figures, limit, met: help <= MAX_RATIO * bare }];
}

function median(run: () => void): number {
  const times: number[] = [];
  for (let round = 0; round < RUNS; round += 1) {
    const started = performance.now();
    run();
    times.push(performance.now() - started);
  }
  return times.sort((a, b) => a - b)[Math.floor(RUNS / 2)] ?? Number.NaN;
}
