import type { Op } from '../lib/operation.ts';
import type { JsonObject, Json } from '../lib/json.ts';

/** A tool as the model is told of it. */
export interface ToolSpec {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

export interface ToolCall {
  /** As the provider gave it; unique within one answer. */
  id: string;
  name: string;
  /** Raw JSON text. Parsed by the caller, who must expect it to be malformed. */
  arguments: string;
}

export type ModelMessage =
  /** `message`: id of the delivered message these words came with. Kept with the session, never sent to a provider. */
  | { role: 'user'; text: string; message?: string }
  | { role: 'assistant'; text: string; toolCalls: ToolCall[] }
  | { role: 'tool'; toolCallId: string; name: string; text: string; isError: boolean };

export interface ModelRequest {
  /** `provider/model`. */
  model: string;
  system: string;
  messages: ModelMessage[];
  tools: ToolSpec[];
  /** Enforced by the provider; also what a ledger reserves. */
  maxOutputTokens: number;
  temperature?: number;
  /** Asks for one JSON object, as text. */
  responseFormat?: 'json';
}

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
}

export type StopReason = 'stop' | 'tool-calls' | 'length' | 'refusal' | 'other';

/**
 * One answer as it arrives. A stream ends with exactly one `end`, or throws a TemperError with a `TEMPER_MODEL_*` code;
 * failures inside a stream that began well throw too. A `tool-call` is given only when its arguments are complete, and
 * none at all when the answer was cut (`stopReason: 'length'`): nothing is executed from a truncated call.
 */
export type ModelEvent =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; call: ToolCall }
  /** Something the provider did on its own (hosted tools and the like). Kept for the trace, never executed. */
  | { type: 'provider'; name: string; data: Json }
  | { type: 'end'; stopReason: StopReason; usage: TokenUsage; model: string };

export interface Model {
  stream(request: ModelRequest, op: Op): AsyncIterable<ModelEvent>;
  /** One vector a text. Adapters without embeddings throw TEMPER_MODEL_NOT_FOUND. */
  embed(texts: string[], op: Op): Promise<Float32Array[]>;
}
