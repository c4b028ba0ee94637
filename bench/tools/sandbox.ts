import { readFileSync } from 'node:fs';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { systemClock } from '../../src/lib/clock.ts';
import { createSupervisor } from '../../src/sandbox/supervisor.ts';
import { aJob, anOp, echoHost } from '../../src/sandbox/sandbox.testing.ts';
import { compareWithBareLoop, INPUT, quantile, SOURCE } from '../baseline/baseline.ts';
import type { BenchRow } from '../row.ts';

const STARTS = 9;
const MEBIBYTE = 1_048_576;
const MAX_RESIDENT_BYTES = 130_000_000;
const CODE_CACHE = resolve(import.meta.dirname, '../../node_modules/.cache/node');

export async function benchSandbox(): Promise<BenchRow[]> {
  return [await warmCall(), await coldStart(), await residentMemory()];
}

async function warmCall(): Promise<BenchRow> {
  await using sandbox = await createSupervisor({ clock: systemClock });
  const job = aJob(SOURCE, { input: INPUT });
  return await compareWithBareLoop('warm call of the sandbox', { p50: 2, p99: 4 }, async () => {
    const outcome = await sandbox.run(job, echoHost, anOp());
    if (!outcome.ok) throw new Error(outcome.message);
  });
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

/** The resident memory of a process with only a supervisor, and of its one warm runner. */
async function residentMemory(): Promise<BenchRow> {
  // The first process strips the types of the sources and keeps the code; the second one starts without that, as an installation does.
  await heldMemory();
  const [supervisor, runner] = await heldMemory();
  const total = supervisor + runner;
  return {
    name: 'memory of a supervisor and one warm runner',
    figures: { supervisor: mebibytes(supervisor), runner: mebibytes(runner), together: mebibytes(total) },
    limit: `≤ ${MAX_RESIDENT_BYTES / 1_000_000} MB resident`,
    met: total <= MAX_RESIDENT_BYTES,
  };
}

async function heldMemory(): Promise<[supervisor: number, runner: number]> {
  const holder = fork(join(import.meta.dirname, 'sandbox-holder.ts'), {
    execArgv: ['--no-warnings'],
    env: { NODE_COMPILE_CACHE: CODE_CACHE, ...process.env },
  });
  const [pids] = (await once(holder, 'message')) as [number[]];
  const [supervisor = 0, runner = 0] = [holder.pid ?? 0, ...pids].map(residentBytes);
  holder.disconnect();
  await once(holder, 'exit');
  return [supervisor, runner];
}

function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(match?.[1] ?? Number.NaN) * 1_024;
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(0)} MiB`;
}
