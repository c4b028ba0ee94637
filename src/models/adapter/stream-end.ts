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
  /** Undefined: the provider reported none. */
  usage: TokenUsage | undefined;
  model: string;
}

/** No model asks for so many calls at once, and the cost of collecting them grows with the square of their number. */
const MAX_TOOL_CALLS = 256;
/** Of one count; a larger figure is a provider's error. */
const MAX_TOKENS = 10_000_000;

const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };

/** Throws TEMPER_MODEL_FORMAT when an answer that has `count` tool calls starts another. */
export function assertToolCallAllowed(provider: string, count: number): void {
  if (count >= MAX_TOOL_CALLS) throw formatError(provider, `sent more than ${MAX_TOOL_CALLS} tool calls`);
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
  const { model } = answer;
  const usage = limitedUsage(answer.usage ?? NO_USAGE);
  return [
    ...withUniqueIds(calls).map((call): ModelEvent => ({ type: 'tool-call', call })),
    { type: 'end', stopReason, usage, model },
  ];
}

/** The larger of each count: a count is a total so far, so a smaller one that follows is a provider's error. */
export function largerUsage(usage: TokenUsage | undefined, next: TokenUsage | undefined): TokenUsage | undefined {
  if (usage === undefined || next === undefined) return next ?? usage;
  return {
    inputTokens: Math.max(usage.inputTokens, next.inputTokens),
    outputTokens: Math.max(usage.outputTokens, next.outputTokens),
    cachedInputTokens: Math.max(usage.cachedInputTokens, next.cachedInputTokens),
    cacheCreationInputTokens: Math.max(usage.cacheCreationInputTokens ?? 0, next.cacheCreationInputTokens ?? 0),
  };
}

function limitedUsage(usage: TokenUsage): TokenUsage {
  const { inputTokens, outputTokens, cachedInputTokens, cacheCreationInputTokens = 0 } = usage;
  const limited = (tokens: number): number => Math.min(MAX_TOKENS, tokens);
  return {
    inputTokens: limited(inputTokens),
    outputTokens: limited(outputTokens),
    cachedInputTokens: limited(cachedInputTokens),
    ...(cacheCreationInputTokens > 0 ? { cacheCreationInputTokens: limited(cacheCreationInputTokens) } : {}),
  };
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
