import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { anAgent, calls, says } from '../../src/agent/loop/scripted-loop.testing.ts';
import { fileRecordStore } from '../../src/lib/file-record-store.ts';
import type { Model } from '../../src/models/port.ts';
import { openDurableLoop } from './durable-loop.ts';
import type { BenchRow } from '../row.ts';
import { callOptions } from '../../test/support/call-options.ts';

const ROUNDS = 5;
const AGENTS = 50;
const LIMIT_MILLISECONDS = 5;

/** A model that responds at once: first with a tool call, then with text. */
function instantModel(onCall: () => void): Model {
  let turn = 0;
  return {
    async *stream() {
      onCall();
      turn += 1;
      yield* turn % 2 === 1 ? calls(['lookup', { key: 'a' }]) : says('done');
    },
    embed: () => Promise.reject(new Error('not used')),
  };
}

/**
 * The engine's own time with an instant model and an instant tool, and with sessions and ledger on disk: of one turn, and from creation to
 * the first model call. The fastest of five rounds counts, because other processes share the disk. The first round is also a warm-up.
 */
export async function benchTurn(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-turn-'));
  try {
    const turns: number[][] = [];
    const starts: number[][] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const agents = [];
      for (let agent = 0; agent < AGENTS; agent += 1) agents.push(await oneAgent(join(folder, `${round}-${agent}`)));
      turns.push(agents.map(({ turn }) => turn));
      starts.push(agents.map(({ start }) => start));
    }
    return [row('turn: instant model and tool, durable', turns), row('agent: created to first model call', starts)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds per turn (mean of the two turns of a message), and from creation to the first model call. */
async function oneAgent(folder: string): Promise<{ turn: number; start: number }> {
  const created = performance.now();
  let firstCall = 0;
  const model = instantModel(() => {
    if (firstCall === 0) firstCall = performance.now();
  });
  await using durable = await openDurableLoop(fileRecordStore(folder), model);
  const { loop } = durable;
  const message = { session: 's-1', rootMessage: 'root', text: 'What is it?' };
  await loop.handle(message, anAgent(), () => undefined, callOptions());
  const before = performance.now();
  const { turns } = await loop.handle(message, anAgent(), () => undefined, callOptions());
  const turn = (performance.now() - before) / turns;
  return { turn, start: firstCall - created };
}

function row(name: string, rounds: number[][]): BenchRow {
  const [fastest = []] = rounds
    .map((times) => times.toSorted((a, b) => a - b))
    .toSorted((a, b) => median(a) - median(b));
  const slow = fastest[Math.floor(fastest.length * 0.95)] ?? Number.NaN;
  return {
    name,
    figures: { p50: `${median(fastest).toFixed(2)} ms`, p95: `${slow.toFixed(2)} ms` },
    limit: `p50 ≤ ${LIMIT_MILLISECONDS} ms`,
    met: median(fastest) <= LIMIT_MILLISECONDS,
  };
}

function median(sorted: number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
