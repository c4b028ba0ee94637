import type { JsonObject } from '../../../lib/json.ts';
import type { FilledAnswer } from './wire.ts';

/** The response object, as a complete body and inside the events that contain it. */
export function responseBody(answer: FilledAnswer, output: JsonObject[]): JsonObject {
  const failed = answer.inBandError !== undefined;
  const cut = answer.stopReason === 'length' || answer.stopReason === 'refusal';
  const reason = answer.stopReason === 'length' ? 'max_output_tokens' : 'content_filter';
  const { inputTokens, outputTokens, cachedInputTokens } = answer.usage;
  return {
    ...emptyResponse(answer),
    status: failed ? 'failed' : cut ? 'incomplete' : 'completed',
    error: answer.inBandError ? { code: answer.inBandError.type, message: answer.inBandError.message } : null,
    incomplete_details: cut ? { reason } : null,
    output,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedInputTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: inputTokens + outputTokens,
    },
  };
}

/** The response object at the start of a stream. */
export function emptyResponse(answer: FilledAnswer): JsonObject {
  return {
    id: answer.id,
    object: 'response',
    created_at: 0,
    model: answer.model,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    output: [],
    parallel_tool_calls: true,
    store: false,
    usage: null,
  };
}
