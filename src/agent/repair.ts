import type { ModelMessage, ToolCall } from '../models/port.ts';

type AssistantMessage = Extract<ModelMessage, { role: 'assistant' }>;
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

/** What a model is told of a call whose result never came. */
const LOST_RESULT = '[Tool execution was interrupted or lost]';

/**
 * A history every provider accepts, whatever a crash, a cancellation or a trim left: each tool call has exactly one
 * result right after the message that made it, the first message is the user's, no two user or assistant messages follow
 * each other, none is empty. In this order:
 *
 *   1  collect the ids of calls; a second call of the same id in one message is dropped
 *   2  drop results nobody asked for, and empty user messages
 *   2b move results right after their call
 *   2c keep the first result of a call
 *   2d give a call without a result an error as its result
 *   2e drop assistant messages that say and call nothing
 *   3  merge neighbours of the same role; drop what stands before the first user message
 *
 * Providers reuse ids from one answer to the next, so a result belongs to the last call of its id before it and, when
 * there is none, to the first one after it. Pure; a repaired history is its own repair.
 */
export function repairHistory(items: readonly ModelMessage[]): ModelMessage[] {
  const results = assignResults(items);
  const placed: ModelMessage[] = [];
  for (const [index, item] of items.entries()) {
    if (item.role === 'tool') continue;
    if (item.role === 'user') {
      if (item.text.trim() !== '') placed.push(item);
      continue;
    }
    const calls = uniqueCalls(item);
    if (calls.length === 0 && item.text.trim() === '') continue;
    placed.push({ ...item, toolCalls: calls });
    for (const call of calls) placed.push(results.get(placeOf(index, call.id)) ?? lostResult(call));
  }
  const merged = mergeNeighbours(placed);
  const first = merged.findIndex((item) => item.role === 'user');
  return first === -1 ? [] : merged.slice(first);
}

/** The result of each call, by place of the call: steps 1, 2, 2b and 2c. */
function assignResults(items: readonly ModelMessage[]): Map<string, ToolMessage> {
  const callers = new Map<string, number[]>();
  for (const [index, item] of items.entries()) {
    if (item.role !== 'assistant') continue;
    for (const call of uniqueCalls(item)) callers.set(call.id, [...(callers.get(call.id) ?? []), index]);
  }
  const results = new Map<string, ToolMessage>();
  const early: { place: string; item: ToolMessage }[] = [];
  for (const [index, item] of items.entries()) {
    if (item.role !== 'tool') continue;
    const uses = callers.get(item.toolCallId);
    if (uses === undefined) continue;
    const caller = uses.findLast((use) => use < index);
    if (caller === undefined) {
      early.push({ place: placeOf(uses[0] ?? 0, item.toolCallId), item });
      continue;
    }
    const place = placeOf(caller, item.toolCallId);
    if (!results.has(place)) results.set(place, item);
  }
  for (const { place, item } of early) if (!results.has(place)) results.set(place, item);
  return results;
}

function placeOf(index: number, callId: string): string {
  return `${index}:${callId}`;
}

function uniqueCalls(message: AssistantMessage): ToolCall[] {
  const seen = new Set<string>();
  return message.toolCalls.filter((call) => !seen.has(call.id) && seen.add(call.id));
}

function lostResult(call: ToolCall): ToolMessage {
  return { role: 'tool', toolCallId: call.id, name: call.name, text: LOST_RESULT, isError: true };
}

function mergeNeighbours(items: readonly ModelMessage[]): ModelMessage[] {
  const merged: ModelMessage[] = [];
  for (const item of items) {
    const last = merged.at(-1);
    if (last?.role === 'user' && item.role === 'user') {
      merged[merged.length - 1] = { role: 'user', text: `${last.text}\n\n${item.text}` };
    } else if (last?.role === 'assistant' && item.role === 'assistant') {
      const text = [last.text, item.text].filter((part) => part.trim() !== '').join('\n\n');
      merged[merged.length - 1] = { role: 'assistant', text, toolCalls: [...last.toolCalls, ...item.toolCalls] };
    } else {
      merged.push(item);
    }
  }
  return merged;
}
