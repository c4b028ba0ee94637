import { isJsonObject, type Json } from '../../lib/json.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { AppendFlags } from '../ports.ts';

/** One line of the history of a session. */
export interface HistoryEntry {
  /** Number of items before this entry. */
  after: number;
  items: ModelMessage[];
  tainted: boolean;
  private?: boolean;
}

export function historyEntry(after: number, items: ModelMessage[], marks: AppendFlags): HistoryEntry {
  return { after, items, tainted: marks.tainted === true, ...(marks.private === true ? { private: true } : {}) };
}

export function toHistoryLine(entry: HistoryEntry): Json {
  const { after, items, tainted } = entry;
  const marks = { ...(tainted ? { tainted } : {}), ...(entry.private === true ? { private: true } : {}) };
  return { after, items: items as unknown as Json, ...marks };
}

/** Parses a line; undefined when it is not a valid entry. */
export function parseHistoryEntry(line: Json): HistoryEntry | undefined {
  if (!isJsonObject(line) || typeof line.after !== 'number' || !Array.isArray(line.items)) return undefined;
  if (!line.items.every(isMessage)) return undefined;
  const items = line.items as unknown as ModelMessage[];
  const isPrivate = line.private === true;
  return { after: line.after, items, tainted: line.tainted === true, ...(isPrivate ? { private: true } : {}) };
}

function isMessage(item: Json): boolean {
  if (!isJsonObject(item) || typeof item.text !== 'string') return false;
  if (item.role === 'user') return true;
  if (item.role === 'assistant') return Array.isArray(item.toolCalls) && item.toolCalls.every(isToolCall);
  return item.role === 'tool' && typeof item.toolCallId === 'string' && typeof item.name === 'string';
}

function isToolCall(call: Json): boolean {
  return isJsonObject(call) && [call.id, call.name, call.arguments].every((member) => typeof member === 'string');
}
