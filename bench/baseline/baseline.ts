import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Json } from '../../src/lib/json.ts';
import type { BenchRow } from '../row.ts';

/** A typical forged tool: it iterates over rows and returns a small result. */
export const SOURCE = `function execute(input) {
  const totals = {};
  for (const row of input.rows) totals[row.region] = (totals[row.region] ?? 0) + row.amount * row.price;
  return { totals, rows: input.rows.length };
}`;
export const INPUT: Json = {
  rows: Array.from({ length: 50 }, (_, index) => ({ region: `r${index % 5}`, amount: index, price: 1.5 })),
};
const ROUNDS = 8;
const CALLS = 150;

/** Alternates rounds of `call` and of the bare loop, so that load on the machine affects both. The first round is a warm-up. */
export async function compareWithBareLoop(
  name: string,
  limits: { p50: number; p99: number },
  call: () => Promise<void>,
): Promise<BenchRow> {
  const bare = fork(join(import.meta.dirname, 'bare-calls.ts'), { execArgv: ['--no-node-snapshot', '--no-warnings'] });
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const times: number[] = [];
    for (let count = 0; count < CALLS; count += 1) {
      const begin = performance.now();
      await call();
      times.push(performance.now() - begin);
    }
    bare.send({ source: SOURCE, input: JSON.stringify(INPUT), calls: CALLS });
    const [bareTimes] = (await once(bare, 'message')) as [number[]];
    if (round === 0) continue;
    ours.push(...times);
    theirs.push(...bareTimes);
  }
  bare.kill('SIGKILL');
  const p50 = quantile(ours, 0.5) / quantile(theirs, 0.5);
  const p99 = quantile(ours, 0.99) / quantile(theirs, 0.99);
  return {
    name: `${name}, relative to a bare isolate-per-call loop`,
    figures: {
      'p50 ratio': p50.toFixed(2),
      'p99 ratio': p99.toFixed(2),
      'p50 and p99': `${milliseconds(ours)}; baseline ${milliseconds(theirs)}`,
    },
    limit: `p50 ≤ ${limits.p50} ×, p99 ≤ ${limits.p99} ×`,
    met: p50 <= limits.p50 && p99 <= limits.p99,
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function milliseconds(times: readonly number[]): string {
  return [0.5, 0.99].map((share) => `${quantile(times, share).toFixed(2)} ms`).join(' / ');
}
