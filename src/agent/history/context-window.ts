import { TemperError } from '../../lib/errors.ts';
import { requestSize, textSize, unitsWithin } from '../../models/charge/request-size.ts';
import type { CountedRequest, ModelInput, ModelMessage } from '../../models/port.ts';
import { repairHistory } from './repair-history.ts';
import { leastShare, ratioOfNew, windowShare } from './request-tokens.ts';
import { truncateAtLine } from './tool-result-text.ts';

export interface ContextBudget {
  /** Context window of the model minus the tokens reserved for its response. */
  windowTokens: number;
  /** System prompt and tools, which are part of every request. */
  fixed: Pick<ModelInput, 'system' | 'tools'>;
  /** Text of the current message. It is never removed. */
  task: string;
  /** What the provider counted for the last request of the session. */
  last?: CountedRequest;
}

const COMPACTED_CHARACTERS = 2_000;
/** Fewer characters of scripts whose characters have several tokens. */
const COMPACTED_TOKENS = 1_000;

/**
 * Fits the history into the context window. First the tool results: each at most 30 % of the window, all together at most 75 %; the
 * oldest are truncated to 2,000 characters until they fit. Then the conversation: above 70 % of the window the last 10 messages
 * stay, above 90 % the last 4, and when those do not fit either, every result is truncated. A note states the removed amount. Pure.
 * Throws TEMPER_MODEL_CONTEXT_OVERFLOW when the remaining messages cannot fit.
 */
export function fitContext(messages: ModelMessage[], budget: ContextBudget): ModelMessage[] {
  const share = (some: ModelMessage[]): number => shareOf(some, budget);
  const fitted = capResults(messages, budget);
  const fill = share(fitted);
  if (fill <= 0.7) return fitted;
  if (fill <= 0.9) return keepLast(fitted, 10, budget.task);
  const kept = keepLast(fitted, 4, budget.task);
  if (share(kept) <= 0.9) return kept;
  const smallest = kept.map((message) => compactedResult(message));
  // The estimate is on the high side, and the provider may still accept what is only possibly too long.
  const needed = leastShare(estimateRequest(smallest, budget.fixed), budget.windowTokens, budget.last);
  if (needed <= 1) return smallest;
  throw new TemperError(
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
    `the last messages alone would take at least ${Math.round(needed * 100)} % of the ${budget.windowTokens} tokens the model can read; start a new session or use a model with a larger window`,
  );
}

/** The share of the window that the messages take after their results are truncated. */
export function contextFill(messages: ModelMessage[], budget: ContextBudget): number {
  return shareOf(capResults(messages, budget), budget);
}

/** The tokens of the request with these messages, before any correction by a count. */
export function estimateRequest(messages: ModelMessage[], { system, tools }: ContextBudget['fixed']): number {
  return requestSize({ system, tools, messages }).tokens;
}

function shareOf(messages: ModelMessage[], { fixed, windowTokens, last }: ContextBudget): number {
  return windowShare(estimateRequest(messages, fixed), windowTokens, last);
}

function capResults(messages: ModelMessage[], { windowTokens, last }: ContextBudget): ModelMessage[] {
  const window = windowTokens / ratioOfNew(last);
  const sizes = messages.map((message) => (message.role === 'tool' ? textSize(message.text).tokens : 0));
  let total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= 0.75 * window && Math.max(0, ...sizes) <= 0.3 * window) return messages;
  const single = Math.max(COMPACTED_TOKENS, Math.floor(0.3 * window));
  const capped = messages.map((message, index) => {
    const size = sizes[index] ?? 0;
    if (message.role !== 'tool' || size <= single) return message;
    const text = truncateAtLine(message.text, unitsWithin(message.text, single));
    total += textSize(text).tokens - size;
    return { ...message, text };
  });
  for (const [index, message] of capped.entries()) {
    if (total <= 0.75 * window) break;
    if (message.role !== 'tool') continue;
    const smaller = compactedResult(message);
    total += textSize(smaller.text).tokens - textSize(message.text).tokens;
    capped[index] = smaller;
  }
  return capped;
}

function compactedResult(message: ModelMessage): ModelMessage {
  if (message.role !== 'tool') return message;
  const { text } = message;
  const kept = Math.min(COMPACTED_CHARACTERS, unitsWithin(text, COMPACTED_TOKENS));
  return text.length <= kept * 1.1 ? message : { ...message, text: truncateAtLine(text, kept) };
}

/** A note and the task, then the last `count` messages, extended backwards so that no tool result loses its call. */
function keepLast(messages: ModelMessage[], count: number, task: string): ModelMessage[] {
  let start = Math.max(0, messages.length - count);
  while (start > 0 && messages[start]?.role === 'tool') start -= 1;
  if (start === 0) return messages;
  const kept = messages.slice(start);
  const removed = messages.slice(0, start);
  const note = `[${removed.length} earlier messages (${charactersOf(removed)} characters) were removed to fit the context window]`;
  const taskStays = kept.some((message) => message.role === 'user' && message.text.includes(task));
  return repairHistory([{ role: 'user', text: taskStays ? note : `${note}\n\n${task}` }, ...kept]);
}

function charactersOf(messages: readonly ModelMessage[]): number {
  let sum = 0;
  for (const message of messages) {
    sum += message.text.length;
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) sum += call.name.length + call.arguments.length;
    }
  }
  return sum;
}
