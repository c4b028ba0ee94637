import type { AnswerNormalizer } from '../adapter/wire-format.ts';
import { formatError, inBandError } from '../adapter/provider-errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { arrayAt, countAt, objectAt, textAt } from '../adapter/json-members.ts';
import { endEvents, largerUsage } from '../adapter/stream-end.ts';
import type { ModelEvent, StopReason, TokenUsage } from '../port.ts';
import { ToolCallFragments } from './tool-call-fragments.ts';

const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  stop: 'stop',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  length: 'length',
  model_length: 'length',
  content_filter: 'refusal',
};

/** Chat Completions: chunks of a stream, or one complete body. Requests ask for one choice, so only the first is read. */
export function chatNormalizer(provider: string, offeredTools: readonly string[]): AnswerNormalizer {
  const calls = new ToolCallFragments(provider);
  let usage: TokenUsage | undefined;
  let model = '';
  let stopReason: StopReason | undefined;
  let refused = false;

  const readHead = (body: Json): void => {
    const error = inBandError(provider, body);
    if (error) throw error;
    model = textAt(body, 'model') || model;
    usage = largerUsage(usage, usageOf(objectAt(body, 'usage') ?? objectAt(objectAt(body, 'x_groq'), 'usage')));
  };
  const readDelta = (delta: Json | undefined): ModelEvent[] => {
    const events: ModelEvent[] = [];
    const reasoning = textAt(delta, 'reasoning_content') || textAt(delta, 'reasoning');
    if (reasoning !== '') events.push({ type: 'reasoning', text: reasoning });
    const refusal = textAt(delta, 'refusal');
    if (refusal !== '') refused = true;
    const content = contentText(delta) + refusal;
    if (content !== '') events.push({ type: 'text', text: content });
    for (const fragment of arrayAt(delta, 'tool_calls')) calls.add(fragment);
    return events;
  };
  const readReason = (choice: Json): void => {
    const reason = textAt(choice, 'finish_reason');
    if (reason !== '') stopReason ??= STOP_REASONS[reason] ?? 'other';
  };

  return {
    // Always false: the chunk with the usage arrives after the one with the finish reason, so the stream must be read to its end.
    isComplete: false,
    feed(chunk) {
      readHead(chunk);
      const choice = firstChoice(chunk);
      if (!choice || stopReason !== undefined) return [];
      const events = readDelta(objectAt(choice, 'delta') ?? objectAt(choice, 'message'));
      readReason(choice);
      return events;
    },
    readBody(body) {
      readHead(body);
      const choice = firstChoice(body);
      const message = objectAt(choice, 'message');
      if (!choice || !message) throw formatError(provider, 'sent a body that is not a chat completion');
      const events = readDelta(message);
      readReason(choice);
      return events;
    },
    finish() {
      return endEvents({ provider, offeredTools, stopReason, refused, calls: calls.all(), usage, model });
    },
    get usage() {
      return usage !== undefined && usage.inputTokens > 0 ? usage : undefined;
    },
  };
}

function firstChoice(body: Json): Json | undefined {
  return arrayAt(body, 'choices').find((choice) => isJsonObject(choice) && (countAt(choice, 'index') ?? 0) === 0);
}

/** Text, or with some servers a list of parts. */
function contentText(delta: Json | undefined): string {
  const parts = arrayAt(delta, 'content');
  return parts.length === 0 ? textAt(delta, 'content') : parts.map((part) => textAt(part, 'text')).join('');
}

function usageOf(usage: Json | undefined): TokenUsage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const inputTokens = countAt(usage, 'prompt_tokens') ?? 0;
  const completion = countAt(usage, 'completion_tokens') ?? 0;
  // Some servers count reasoning in the total alone, and it is billed as output.
  const outputTokens = Math.max(completion, (countAt(usage, 'total_tokens') ?? 0) - inputTokens);
  const cachedInputTokens =
    countAt(objectAt(usage, 'prompt_tokens_details'), 'cached_tokens') ??
    countAt(usage, 'cached_tokens') ??
    countAt(usage, 'prompt_cache_hit_tokens') ??
    0;
  return { inputTokens, outputTokens, cachedInputTokens: Math.min(cachedInputTokens, inputTokens) };
}
