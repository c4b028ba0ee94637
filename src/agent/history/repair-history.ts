import type { ModelMessage, ToolCall } from '../../models/port.ts';

type AssistantMessage = Extract<ModelMessage, { role: 'assistant' }>;
type ToolResultMessage = Extract<ModelMessage, { role: 'tool' }>;

/** Result text for a call whose result is missing. */
const LOST_RESULT = '[Tool execution was interrupted or lost]';

/**
 * Converts any history, for example one left by a crash, a cancellation or a trim, into one that every provider accepts: each tool
 * call has exactly one result directly after its message, the first message is a user message, no two user or assistant messages
 * are adjacent, and no message is empty. Steps, in this order:
 *
 *   1  collect the ids of calls; a second call of the same id in one message is dropped
 *   2  drop results without a call, journals of code, and empty user messages
 *   2b move results directly after their call
 *   2c keep the first result of a call
 *   2d add an error result to a call without a result
 *   2e drop assistant messages without text and calls
 *   3  merge adjacent messages of the same role; drop all items before the first user message
 *
 * Providers reuse ids across answers, so a result belongs to the nearest earlier call with its id, otherwise to the first later one.
 * Pure and idempotent.
 */
export function repairHistory(items: readonly ModelMessage[]): ModelMessage[] {
  const results = assignResults(items);
  const ordered: ModelMessage[] = [];
  for (const [index, item] of items.entries()) {
    if (item.role === 'tool') continue;
    if (item.role === 'user') {
      if (item.text.trim() !== '') ordered.push(item);
      continue;
    }
    const calls = uniqueCalls(item);
    if (calls.length === 0 && item.text.trim() === '') continue;
    ordered.push({ ...item, toolCalls: calls });
    for (const call of calls) ordered.push(results.get(callKey(index, call.id)) ?? lostResult(call));
  }
  const merged = mergeNeighbours(ordered);
  const first = merged.findIndex((item) => item.role === 'user');
  return first === -1 ? [] : merged.slice(first);
}

/** The result of each call, by `callKey`: steps 1, 2, 2b and 2c. */
function assignResults(items: readonly ModelMessage[]): Map<string, ToolResultMessage> {
  const callers = new Map<string, number[]>();
  for (const [index, item] of items.entries()) {
    if (item.role !== 'assistant') continue;
    for (const call of uniqueCalls(item)) callers.set(call.id, [...(callers.get(call.id) ?? []), index]);
  }
  const results = new Map<string, ToolResultMessage>();
  const unmatched: { key: string; item: ToolResultMessage }[] = [];
  for (const [index, item] of items.entries()) {
    if (item.role !== 'tool' || item.journal === true) continue;
    const uses = callers.get(item.toolCallId);
    if (uses === undefined) continue;
    const caller = uses.findLast((use) => use < index);
    if (caller === undefined) {
      unmatched.push({ key: callKey(uses[0] ?? 0, item.toolCallId), item });
      continue;
    }
    const key = callKey(caller, item.toolCallId);
    if (!results.has(key)) results.set(key, item);
  }
  for (const { key, item } of unmatched) if (!results.has(key)) results.set(key, item);
  return results;
}

function callKey(index: number, callId: string): string {
  return `${index}:${callId}`;
}

/** The calls of a message; of those with one id, which can have one result only, the first. */
export function uniqueCalls(message: AssistantMessage): ToolCall[] {
  const seen = new Set<string>();
  return message.toolCalls.filter((call) => !seen.has(call.id) && seen.add(call.id));
}

function lostResult(call: ToolCall): ToolResultMessage {
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
