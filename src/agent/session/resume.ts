import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { SessionHistory } from '../ports.ts';
import { parkedCalls } from '../code/journal.ts';
import { itemsForModel } from '../compaction/summary-item.ts';
import { repairHistory, uniqueCalls } from '../history/repair-history.ts';

/** State of a message whose processing was interrupted, for example by a crash. */
export interface ResumePoint {
  /** Number of items stored before the message. */
  base: number;
  /** Number of items of the message. */
  items: number;
  turns: number;
  toolCalls: number;
  /** The final reply, when the model already gave it. */
  reply: string | undefined;
  /** Tool calls of the last response that have no result. They are repeated with their original idempotency keys. */
  pending: ToolCall[];
  /** The history for the model: repaired, without results for the pending calls. */
  messages: ModelMessage[];
}

/** The progress that the session stores for the message with this id; undefined for a new message. */
export function findResumePoint(
  items: readonly ModelMessage[],
  seq: number,
  id: string | undefined,
): ResumePoint | undefined {
  if (id === undefined) return undefined;
  const start = items.findLastIndex((item) => item.role === 'user' && item.message === id);
  if (start === -1) return undefined;
  const itemsAfter = items.slice(start + 1);
  const responses = itemsAfter.filter((item) => item.role === 'assistant');
  const last = itemsAfter.at(-1);
  const isComplete = last?.role === 'assistant' && last.toolCalls.length === 0;
  const base = seq - (items.length - start);
  return {
    base,
    items: items.length - start,
    turns: responses.length,
    toolCalls: responses.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0),
    reply: isComplete ? last.text : undefined,
    ...pendingCalls(items, start),
  };
}

/** A message whose processing stopped with calls that have no result. */
export interface UnfinishedMessage {
  id: string;
  text: string;
  /** The idempotency keys of these calls. */
  callKeys: string[];
}

/** The last message of the session, when it is unfinished and was stored with its id. */
export function unfinishedMessage(session: string, { items, seq }: SessionHistory): UnfinishedMessage | undefined {
  const last = items.findLast((item) => item.role === 'user' && item.message !== undefined);
  if (last?.role !== 'user' || last.message === undefined) return undefined;
  const point = findResumePoint(items, seq, last.message);
  if (point === undefined || point.pending.length === 0) return undefined;
  const answer = answerKey(session, point.base, point.turns);
  const callKeys = point.pending.flatMap(({ id }) => [
    callKey(answer, id),
    ...parkedCalls(items, id).map((call) => callKey(callKey(answer, id), String(call))),
  ]);
  return { id: last.message, text: last.text, callKeys };
}

/** The key of an answer: equal in every attempt at its message. `answers` counts the stored ones, this one included. */
export function answerKey(session: string, base: number, answers: number): string {
  return `${session}/${base}/${answers}`;
}

/** The session of a call with the key of an answer, or of a call that it makes. Names of sessions have no `/`. */
export function sessionOfKey(key: string): string {
  return key.split('/', 1)[0] ?? '';
}

/** The idempotency key of a call of this answer, or of a call that its code makes. */
export function callKey(answer: string, callId: string): string {
  return `${answer}/${callId}`;
}

function pendingCalls(items: readonly ModelMessage[], start: number): Pick<ResumePoint, 'pending' | 'messages'> {
  const responseIndex = items.findLastIndex((item, index) => index > start && item.role === 'assistant');
  const stored = items[responseIndex];
  const response = stored?.role === 'assistant' ? { ...stored, toolCalls: uniqueCalls(stored) } : stored;
  const results = items.slice(responseIndex + 1).filter((item) => item.role !== 'tool' || item.journal !== true);
  // Other items follow the calls, so they are history and missing results are lost.
  if (response?.role !== 'assistant' || !results.every((item) => item.role === 'tool')) {
    return { pending: [], messages: repairHistory(itemsForModel(items)) };
  }
  const answered = new Set(results.map((item) => item.toolCallId));
  const pending = response.toolCalls.filter(({ id }) => !answered.has(id));
  if (pending.length === 0) return { pending, messages: repairHistory(itemsForModel(items)) };
  const before = repairHistory(itemsForModel(items.slice(0, responseIndex)));
  return { pending, messages: [...before, response, ...results] };
}
