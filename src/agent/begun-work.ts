import type { ModelMessage, ToolCall } from '../models/port.ts';
import { repairHistory } from './repair.ts';

/** Where the work on a message stood when a process was lost in the middle of it. */
export interface BegunWork {
  /** Items stored before the message. */
  base: number;
  turns: number;
  toolCalls: number;
  /** The last word, when it was said already. */
  reply: string | undefined;
  /** The last answer's calls that have no result. They are made again, under the keys they had. */
  pending: ToolCall[];
  /** What the model is sent: the history, repaired, without results for what is pending. */
  messages: ModelMessage[];
}

/** What a session holds of the message with this id; nothing when it is new. */
export function begunWork(items: readonly ModelMessage[], seq: number, id: string | undefined): BegunWork | undefined {
  if (id === undefined) return undefined;
  const start = items.findLastIndex((item) => item.role === 'user' && item.message === id);
  if (start === -1) return undefined;
  const done = items.slice(start + 1);
  const answers = done.filter((item) => item.role === 'assistant');
  const last = done.at(-1);
  const concluded = last?.role === 'assistant' && last.toolCalls.length === 0;
  const base = seq - (items.length - start);
  return {
    base,
    turns: answers.length,
    toolCalls: answers.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0),
    reply: concluded ? last.text : undefined,
    ...openCalls(items, start),
  };
}

function openCalls(items: readonly ModelMessage[], start: number): Pick<BegunWork, 'pending' | 'messages'> {
  const place = items.findLastIndex((item, index) => index > start && item.role === 'assistant');
  const answer = items[place];
  const after = items.slice(place + 1);
  // Something other than results came after: the calls are history, and what never came is lost.
  if (answer?.role !== 'assistant' || !after.every((item) => item.role === 'tool')) {
    return { pending: [], messages: repairHistory(items) };
  }
  const answered = new Set(after.map((item) => item.toolCallId));
  const pending = answer.toolCalls.filter(({ id }) => !answered.has(id));
  if (pending.length === 0) return { pending, messages: repairHistory(items) };
  return { pending, messages: [...repairHistory(items.slice(0, place)), answer, ...after] };
}
