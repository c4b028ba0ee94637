import { readFileSync } from 'node:fs';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '../src/lib/clock.ts';
import type { Json } from '../src/lib/json.ts';
import { createSupervisor } from '../src/sandbox/supervisor.ts';
import { aJob, anOp, echoHost } from '../src/sandbox/testing.ts';
import type { BenchRow } from './row.ts';

/** A tool as models write them: a pass over rows, a small result. */
const SOURCE = `function execute(input) {
  const totals = {};
  for (const row of input.rows) totals[row.region] = (totals[row.region] ?? 0) + row.amount * row.price;
  return { totals, rows: input.rows.length };
}`;
const INPUT: Json = {
  rows: Array.from({ length: 50 }, (_, index) => ({ region: `r${index % 5}`, amount: index, price: 1.5 })),
};
const ROUNDS = 8;
const CALLS = 150;
const STARTS = 9;
const MEBIBYTE = 1_048_576;

export async function benchSandbox(): Promise<BenchRow[]> {
  return [await warmCall(), await coldStart(), await residentMemory()];
}

/** Rounds of ours and of the bare loop take turns, and the median round counts: a busy machine disturbs both alike. */
async function warmCall(): Promise<BenchRow> {
  await using sandbox = await createSupervisor({ clock: systemClock });
  const job = aJob(SOURCE, { input: INPUT });
  const bare = fork(join(import.meta.dirname, 'bare-calls.ts'), { execArgv: ['--no-node-snapshot', '--no-warnings'] });
  const ratios: { p50: number; p99: number }[] = [];
  const shown = { ours: [0, 0], bare: [0, 0] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const ours: number[] = [];
    for (let call = 0; call < CALLS; call += 1) {
      const begin = performance.now();
      const outcome = await sandbox.run(job, echoHost, anOp());
      if (!outcome.ok) throw new Error(outcome.message);
      ours.push(performance.now() - begin);
    }
    bare.send({ source: SOURCE, input: JSON.stringify(INPUT), calls: CALLS });
    const [theirs] = (await once(bare, 'message')) as [number[]];
    if (round === 0) continue;
    ratios.push({
      p50: quantile(ours, 0.5) / quantile(theirs, 0.5),
      p99: quantile(ours, 0.99) / quantile(theirs, 0.99),
    });
    shown.ours = [quantile(ours, 0.5), quantile(ours, 0.99)];
    shown.bare = [quantile(theirs, 0.5), quantile(theirs, 0.99)];
  }
  bare.kill('SIGKILL');
  const p50 = quantile(
    ratios.map((ratio) => ratio.p50),
    0.5,
  );
  const p99 = quantile(
    ratios.map((ratio) => ratio.p99),
    0.5,
  );
  return {
    name: 'warm tool call beside a bare isolate-per-call loop',
    figures: {
      'p50 ratio': p50.toFixed(2),
      'p99 ratio': p99.toFixed(2),
      'last round': `${milliseconds(shown.ours)} beside ${milliseconds(shown.bare)}`,
    },
    limit: 'p50 ≤ 2 ×, p99 ≤ 4 ×',
    met: p50 <= 2 && p99 <= 4,
  };
}

async function coldStart(): Promise<BenchRow> {
  const times: number[] = [];
  for (let start = 0; start < STARTS; start += 1) {
    const begin = performance.now();
    await using sandbox = await createSupervisor({ clock: systemClock });
    const outcome = await sandbox.run(aJob(SOURCE, { input: INPUT }), echoHost, anOp());
    if (!outcome.ok) throw new Error(outcome.message);
    times.push(performance.now() - begin);
  }
  const p50 = quantile(times, 0.5);
  return {
    name: 'cold runner to first result',
    figures: { p50: `${p50.toFixed(0)} ms`, fastest: `${Math.min(...times).toFixed(0)} ms` },
    limit: 'p50 ≤ 150 ms',
    met: p50 <= 150,
  };
}

/** A process that holds a supervisor and nothing else, and its one warm runner. */
async function residentMemory(): Promise<BenchRow> {
  const holder = fork(join(import.meta.dirname, 'sandbox-holder.ts'), { execArgv: ['--no-warnings'] });
  const [pids] = (await once(holder, 'message')) as [number[]];
  const [supervisor = 0, runner = 0] = [holder.pid ?? 0, ...pids].map(residentBytes);
  holder.disconnect();
  await once(holder, 'exit');
  const total = supervisor + runner;
  return {
    name: 'memory of a supervisor and one warm runner',
    figures: { supervisor: mebibytes(supervisor), runner: mebibytes(runner), together: mebibytes(total) },
    limit: '≤ 150 MB resident',
    met: total <= 150_000_000,
  };
}

function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(match?.[1] ?? Number.NaN) * 1_024;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function milliseconds(pair: readonly number[]): string {
  return pair.map((value) => `${value.toFixed(2)} ms`).join(' / ');
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(0)} MiB`;
}
