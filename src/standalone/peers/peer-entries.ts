import type { PeerEnd } from '../../a2a/task.ts';
import { PEER_OUTCOMES, type PeerOutcome, type PeerTask } from '../../bus/peer-task.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';

/** What changes the tasks of the callers of an agent over A2A. */
export type PeerEntry =
  | { op: 'peer-opened'; agent: string; task: PeerTask }
  /** The first end holds. `at`: RFC 3339. */
  | { op: 'peer-ended'; agent: string; id: string; end: PeerEnd; at: string };

/** A task, and its answer while it is kept. */
export interface PeerRecord {
  readonly task: PeerTask;
  readonly end?: PeerEnd;
}

/** By id, oldest first. */
export type PeerRecords = Map<string, PeerRecord>;

/** Tasks of one caller that are kept, beside those that have not ended; the newest of them with their answers. */
const MAX_TASKS_PER_CALLER = 100;
const MAX_ANSWERS_PER_CALLER = 20;

export function isPeerEntry(entry: { op: string }): entry is PeerEntry {
  return entry.op === 'peer-opened' || entry.op === 'peer-ended';
}

export function applyPeerEntry(records: PeerRecords, entry: PeerEntry): void {
  if (entry.op === 'peer-opened') {
    records.set(entry.task.message, { task: entry.task });
    return trimTasks(records, entry.task.caller);
  }
  const found = records.get(entry.id);
  if (found === undefined || found.task.ended !== undefined) return;
  const { end, at } = entry;
  const code = end.kind === 'failed' ? { code: end.code } : {};
  records.set(entry.id, { task: { ...found.task, ended: { outcome: outcomeOf(end), at, ...code } }, end });
}

function outcomeOf(end: PeerEnd): PeerOutcome {
  if (end.kind === 'reply') return end.finishReason === 'refusal' ? 'Rejected' : 'Completed';
  return end.code === 'TEMPER_CANCELLED' ? 'Canceled' : 'Failed';
}

/** A caller cannot remove the tasks of another one. */
function trimTasks(records: PeerRecords, caller: string): void {
  const ended = [...records.values()].filter(({ task }) => task.caller === caller && task.ended !== undefined);
  for (const { task } of ended.slice(0, -MAX_TASKS_PER_CALLER)) records.delete(task.message);
  for (const { task } of ended.slice(0, -MAX_ANSWERS_PER_CALLER))
    if (records.has(task.message)) records.set(task.message, { task });
}

/** The stored form of a snapshot. */
export function storedPeerRecords(records: PeerRecords): Json {
  return [...records.values()] as unknown as Json;
}

/** Reads a snapshot; what cannot be read is left out. */
export function parsePeerRecords(value: Json | undefined): PeerRecords {
  const records: PeerRecords = new Map();
  for (const record of Array.isArray(value) ? value : []) {
    const task = isJsonObject(record) ? record['task'] : undefined;
    if (isJsonObject(task) && typeof task['message'] === 'string' && isEnd(task['ended']))
      records.set(task['message'], record as unknown as PeerRecord);
  }
  return records;
}

function isEnd(value: Json | undefined): boolean {
  return value === undefined || (isJsonObject(value) && PEER_OUTCOMES.includes(value['outcome'] as PeerOutcome));
}
