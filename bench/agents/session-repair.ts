import { itemsForModel } from '../../src/agent/compaction/summary-item.ts';
import { repairHistory } from '../../src/agent/history/repair-history.ts';
import type { ModelMessage } from '../../src/models/port.ts';
import type { BenchRow } from '../row.ts';

const MESSAGES = 1_000;
const ROUNDS = 50;
const LIMIT_MILLISECONDS = 10;
const TEXT = 'An ordinary result of a tool, with some words in it. '.repeat(20);

/** Repair of a session of 1,000 messages, of which every tenth call lost its result and every eleventh result stands elsewhere. */
export async function benchSessionRepair(): Promise<BenchRow[]> {
  const items = damagedSession();
  const times: number[] = [];
  let repaired = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    repaired = repairHistory(itemsForModel(items)).length;
    times.push(performance.now() - started);
  }
  const [fastest = Number.NaN, ...others] = times.sort((a, b) => a - b);
  const median = others[Math.floor(others.length / 2)] ?? Number.NaN;
  return [
    {
      name: `session repair: ${MESSAGES} messages`,
      figures: { best: `${fastest.toFixed(2)} ms`, p50: `${median.toFixed(2)} ms`, repaired: `${repaired} messages` },
      limit: `p50 ≤ ${LIMIT_MILLISECONDS} ms`,
      met: median <= LIMIT_MILLISECONDS,
    },
  ];
}

function damagedSession(): ModelMessage[] {
  const items: ModelMessage[] = [];
  for (let index = 0; items.length < MESSAGES; index += 1) {
    // Providers reuse ids.
    const id = `call-${index % 7}`;
    if (index % 5 === 0) items.push({ role: 'user', text: `question ${index}` });
    items.push({ role: 'assistant', text: '', toolCalls: [{ id, name: 'read', arguments: '{}' }] });
    const result: ModelMessage = { role: 'tool', toolCallId: id, name: 'read', text: TEXT, isError: false };
    if (index % 10 === 9) continue;
    if (index % 11 === 10) items.splice(-2, 0, result);
    else items.push(result);
  }
  return items;
}
