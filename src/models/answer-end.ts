import { formatError } from './errors.ts';
import { unwrapParallel } from './parallel-wrapper.ts';
import type { ModelEvent, StopReason, TokenUsage, ToolCall } from './port.ts';

interface AnswerSoFar {
  provider: string;
  offeredTools: readonly string[];
  /** Undefined: the provider never said that the answer is complete. */
  stopReason: StopReason | undefined;
  /** The model declined in a field of its own, whatever the stop reason says. */
  refused: boolean;
  calls: ToolCall[];
  usage: TokenUsage;
  model: string;
}

/**
 * The last events of an answer. Tool calls are given here and nowhere earlier: only now is it known that the answer is
 * whole, and nothing may be executed from one that is not.
 */
export function endOfAnswer(answer: AnswerSoFar): ModelEvent[] {
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

/** Several servers say `stop` where they mean `tool_calls`, and the other way round. */
function finalReason(answer: AnswerSoFar): StopReason | 'stop' {
  const { stopReason = 'other', calls, refused } = answer;
  if (refused && stopReason !== 'length') return 'refusal';
  if (stopReason === 'stop' && calls.length > 0) return 'tool-calls';
  if (stopReason === 'tool-calls' && calls.length === 0) return 'stop';
  return stopReason;
}

/** Results are matched to calls by id, so one that comes twice gets a suffix. */
function withUniqueIds(calls: ToolCall[]): ToolCall[] {
  const seen = new Set<string>();
  return calls.map((call) => {
    let id = call.id;
    for (let copy = 2; seen.has(id); copy += 1) id = `${call.id}_${copy}`;
    seen.add(id);
    return { ...call, id };
  });
}
