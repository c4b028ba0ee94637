import { TemperError } from '../../lib/errors.ts';
import type { ModelMessage } from '../../models/port.ts';
import { CHARACTERS_PER_TOKEN, charactersOf } from '../../models/token-estimate.ts';
import { repairHistory } from './repair-history.ts';
import { truncateAtLine } from './tool-result-text.ts';

export interface ContextBudget {
  /** Context window of the model minus the tokens reserved for its response. */
  windowTokens: number;
  /** Number of characters in every request: system prompt and tools. */
  fixedCharacters: number;
  /** Text of the current message. It is never removed. */
  task: string;
}

/** Tool output is dense; it has half as many characters per token as prose. */
const RESULT_CHARACTERS_PER_TOKEN = 2;
const COMPACTED_CHARACTERS = 2_000;

/**
 * Fits the history into the context window. First the tool results: each at most 30 % of the window, all together at most 75 %; the
 * oldest are truncated to 2,000 characters until they fit. Then the conversation: above 70 % of the window the last 10 messages
 * stay, above 90 % the last 4, and when those do not fit either, every result is truncated. A note states the removed amount. Pure.
 * Throws TEMPER_MODEL_CONTEXT_OVERFLOW when the remaining messages do not fit.
 */
export function fitContext(messages: ModelMessage[], budget: ContextBudget): ModelMessage[] {
  const fitted = capResults(messages, budget.windowTokens);
  const fill = fillOf(fitted, budget);
  if (fill <= 0.7) return fitted;
  if (fill <= 0.9) return keepLast(fitted, 10, budget.task);
  const kept = keepLast(fitted, 4, budget.task);
  if (fillOf(kept, budget) <= 0.9) return kept;
  const smallest = shrinkContext(kept, budget.task);
  const needed = fillOf(smallest, budget);
  if (needed <= 1) return smallest;
  throw new TemperError(
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
    `the last messages alone would take about ${Math.round(needed * 100)} % of the ${budget.windowTokens} tokens the model can read; start a new session or use a model with a larger window`,
  );
}

/** The strongest reduction: the last 4 messages and the task, with every result truncated. */
export function shrinkContext(messages: ModelMessage[], task: string): ModelMessage[] {
  return keepLast(messages, 4, task).map((message) => compactedResult(message));
}

function fillOf(messages: readonly ModelMessage[], budget: ContextBudget): number {
  return (charactersOf(messages) + budget.fixedCharacters) / CHARACTERS_PER_TOKEN / budget.windowTokens;
}

function capResults(messages: ModelMessage[], windowTokens: number): ModelMessage[] {
  const window = windowTokens * RESULT_CHARACTERS_PER_TOKEN;
  const sizes = messages.map((message) => (message.role === 'tool' ? message.text.length : 0));
  let total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= 0.75 * window && Math.max(0, ...sizes) <= 0.3 * window) return messages;
  const single = Math.max(COMPACTED_CHARACTERS, Math.floor(0.3 * window));
  const capped = messages.map((message) => {
    if (message.role !== 'tool') return message;
    const text = truncateAtLine(message.text, single);
    total += text.length - message.text.length;
    return { ...message, text };
  });
  for (const [index, message] of capped.entries()) {
    if (total <= 0.75 * window) break;
    const smaller = compactedResult(message);
    total += smaller.text.length - message.text.length;
    capped[index] = smaller;
  }
  return capped;
}

function compactedResult(message: ModelMessage): ModelMessage {
  if (message.role !== 'tool' || message.text.length <= COMPACTED_CHARACTERS * 1.1) return message;
  return { ...message, text: truncateAtLine(message.text, COMPACTED_CHARACTERS) };
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
