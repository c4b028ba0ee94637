import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgentLoop } from '../src/agent/loop.ts';
import { anAgent, calls, says, scriptedInvoker } from '../src/agent/scripted.testing.ts';
import { recordSessionStore } from '../src/agent/session-store.ts';
import { openLedgerBook } from '../src/ledger/ledger.ts';
import { systemClock } from '../src/lib/clock.ts';
import { fileRecords } from '../src/lib/file-records.ts';
import { randomIds } from '../src/lib/ids.ts';
import type { Op } from '../src/lib/operation.ts';
import type { Model } from '../src/models/port.ts';
import type { BenchRow } from './row.ts';

const MESSAGES = 200;
const WARM_UP = 20;
const LIMIT_MILLISECONDS = 5;

/** Answers at once: a tool call first, then a text. */
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
 * Our own time around an instant model and an instant tool, sessions and ledger durable on this disk: a whole turn, and
 * from nothing to the first model call.
 */
export async function benchTurn(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-turn-'));
  try {
    const turns: number[] = [];
    const starts: number[] = [];
    for (let index = 0; index < MESSAGES + WARM_UP; index += 1) {
      const { turn, start } = await oneAgent(join(folder, String(index)));
      if (index < WARM_UP) continue;
      turns.push(turn);
      starts.push(start);
    }
    return [row('turn: instant model and tool, durable', turns), row('agent: created to first model call', starts)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of one turn, mean of the two of a message, and from creation to the first model call. */
async function oneAgent(folder: string): Promise<{ turn: number; start: number }> {
  const created = performance.now();
  let firstCall = 0;
  const model = instantModel(() => {
    if (firstCall === 0) firstCall = performance.now();
  });
  const records = fileRecords(folder);
  const book = await openLedgerBook(records, systemClock);
  const loop = createAgentLoop({
    model,
    invoker: scriptedInvoker({ lookup: () => ({ found: true }) }),
    sessions: recordSessionStore(records, systemClock),
    ledger: book.ledger([{ name: 'agent/a', quotas: { tokensPerDay: 1e9 }, prefix: 'spec.quotas.' }]),
    clock: systemClock,
    ids: randomIds,
    costOf: () => 0,
  });
  const op: Op = { signal: new AbortController().signal, deadline: systemClock.monotonic() + 60_000, key: folder };
  const message = { session: 's-1', rootMessage: 'root', text: 'What is it?' };
  await loop.handle(message, anAgent(), () => undefined, { ...op, key: `${folder}/1` });
  const before = performance.now();
  const { turns } = await loop.handle(message, anAgent(), () => undefined, { ...op, key: `${folder}/2` });
  const turn = (performance.now() - before) / turns;
  await book.close();
  return { turn, start: firstCall - created };
}

function row(name: string, times: number[]): BenchRow {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return {
    name,
    figures: { p50: `${at(0.5).toFixed(2)} ms`, p99: `${at(0.99).toFixed(2)} ms` },
    limit: `p50 ≤ ${LIMIT_MILLISECONDS} ms`,
    met: at(0.5) <= LIMIT_MILLISECONDS,
  };
}
