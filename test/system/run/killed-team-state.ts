import assert from 'node:assert/strict';
import { lstat, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { RUN_TOOL_NAME } from '../../../src/agent/tools/run/run-descriptor.ts';
import { readUsage } from '../../../src/ledger/journal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isJsonObject, type Json } from '../../../src/lib/json.ts';
import type { RecordStore } from '../../../src/lib/record-store.ts';
import type { ModelMessage } from '../../../src/models/port.ts';

type Tokens = ReadonlyMap<string, number>;

export async function historyOf(records: RecordStore, agent: string, session: string): Promise<ModelMessage[]> {
  const store = createRecordSessionStore(records, systemClock, { agent, namespace: 'default' });
  return (await store.load(session)).items;
}

/** The stored items of the nested agents of a session, in their order. */
export function nestedItems(items: readonly ModelMessage[]): ModelMessage[] {
  return items.flatMap((item) => {
    if (item.role !== 'tool' || item.journal !== true || item.name !== RUN_TOOL_NAME) return [];
    return (JSON.parse(item.text) as { items: ModelMessage[] }).items;
  });
}

/** The visible items as short texts: what was received, said and called, and the results. */
export function outline(items: readonly ModelMessage[]): string[] {
  return items.flatMap((item) => {
    if (item.role === 'user') return [`< ${item.text.split('\n').at(-1)}`];
    if (item.role === 'tool') return item.journal === true ? [] : [`= ${item.toolCallId}`];
    return item.toolCalls.length === 0 ? [`> ${item.text}`] : item.toolCalls.map(({ id }) => `> ${id}`);
  });
}

export function resultOf(items: readonly ModelMessage[], id: string) {
  return items.find((item) => item.role === 'tool' && item.journal !== true && item.toolCallId === id);
}

/** The requests for approval without a decision. */
export async function openRequests(records: RecordStore): Promise<string[]> {
  const decided = new Set((await records.list('approvals')).map(({ name }) => name));
  return (await records.list('approvalrequests')).map(({ name }) => name).filter((name) => !decided.has(name));
}

/** A reservation of a model call that no process settled. Its tokens stay charged. */
export interface OpenReservation {
  readonly accounts: readonly string[];
  readonly tokens: number;
}

/** A reservation, or its settlement. */
interface JournalLine {
  readonly op: 'reserve' | 'settle';
  readonly id: string;
  readonly accounts?: readonly string[];
  readonly counts: Json;
}

/**
 * The open reservations of the process that opened the journal of the ledger last, by an identity that is stable: a process that is killed
 * before it opens a journal of its own leaves those of the process before it.
 */
export async function openReservations(records: RecordStore): Promise<Map<string, OpenReservation>> {
  const state = await records.get('ledger', 'state');
  const generation = isJsonObject(state) ? Number(state.generation) : 0;
  const lines = (await records.read(`ledger/journal-${generation}`)) as unknown as JournalLine[][];
  const open = new Map<string, OpenReservation>();
  for (const { op, id, accounts = [], counts } of lines.flat()) {
    const tokens = tokensIn(counts);
    if (op === 'settle') open.delete(`${generation}/${id}`);
    else if (tokens > 0) open.set(`${generation}/${id}`, { accounts, tokens });
  }
  return open;
}

/** What each account is charged. */
export async function charged(records: RecordStore): Promise<Tokens> {
  const usage = await readUsage(records, Date.now());
  return new Map([...usage].map(([account, { month }]) => [account, tokensIn({ ...month.counts })]));
}

function tokensIn(counts: Json): number {
  return isJsonObject(counts) ? Number(counts.inputTokens) + Number(counts.outputTokens) : 0;
}

/** Files that calls have written. A file that exists is marked, so that a second write shows. */
export class WrittenFiles {
  readonly #folder: string;
  readonly #marked = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async mark(name: string): Promise<void> {
    if (this.#marked.has(name) || !(await this.exists(name))) return;
    await writeFile(join(this.#folder, name), MARK);
    this.#marked.add(name);
  }

  async exists(name: string): Promise<boolean> {
    return lstat(join(this.#folder, name)).then(
      () => true,
      () => false,
    );
  }

  async assertWrittenOnce(): Promise<void> {
    for (const name of this.#marked)
      assert.equal(await readFile(join(this.#folder, name), 'utf8'), MARK, `${name} was written a second time`);
  }
}

const MARK = 'written before the kill';
