import { formatError } from './provider-errors.ts';
import { unwrapParallel } from './parallel-wrapper.ts';
import type { ModelEvent, StopReason, TokenUsage, ToolCall } from '../port.ts';

interface CollectedAnswer {
  provider: string;
  offeredTools: readonly string[];
  /** Undefined: the provider never marked the answer as complete. */
  stopReason: StopReason | undefined;
  /** The model refused in a separate field, independent of the stop reason. */
  refused: boolean;
  calls: ToolCall[];
  usage: TokenUsage;
  model: string;
}

/**
 * The last events of an answer. Tool calls are emitted here and not earlier: only now is the answer known to be complete,
 * and no call of an incomplete answer may be executed.
 */
export function endEvents(answer: CollectedAnswer): ModelEvent[] {
  if (answer.stopReason === undefined)
    throw formatError(answer.provider, 'ended its answer before it was complete', 'backoff');
  const stopReason = finalReason(answer);
  const calls =
    stopReason === 'tool-calls' ? answer.calls.flatMap((call) => unwrapParallel(call, answer.offeredTools)) : [];
  const { usage, model } = answer;
  return [
    ...withUniqueIds(calls).map((call): ModelEvent => ({ type: 'tool-call', call })),
    { type: 'end', stopReason, usage, model },
  ];
}

/** Corrects the stop reason: several servers send `stop` instead of `tool_calls`, or the reverse. */
function finalReason(answer: CollectedAnswer): StopReason | 'stop' {
  const { stopReason = 'other', calls, refused } = answer;
  if (refused && stopReason !== 'length') return 'refusal';
  if (stopReason === 'stop' && calls.length > 0) return 'tool-calls';
  if (stopReason === 'tool-calls' && calls.length === 0) return 'stop';
  return stopReason;
}

/** Results are matched to calls by id, so a duplicate id gets a suffix. */
function withUniqueIds(calls: ToolCall[]): ToolCall[] {
  const seen = new Set<string>();
  return calls.map((call) => {
    let id = call.id;
    for (let copy = 2; seen.has(id); copy += 1) id = `${call.id}_${copy}`;
    seen.add(id);
    return { ...call, id };
  });
}
