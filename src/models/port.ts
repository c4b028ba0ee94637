import type { CallOptions } from '../lib/call-options.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { JsonObject, Json } from '../lib/json.ts';
import type { ItemOrigin } from './item-origin.ts';

/** A tool as it is described to the model. */
export interface ToolSpec {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

export interface ToolCall {
  /** Id from the provider, unique within one answer. */
  id: string;
  name: string;
  /** Raw JSON text. The caller parses it and must expect malformed JSON. */
  arguments: string;
}

/** What a provider counted for one request. */
export interface CountedRequest {
  /** `provider/model`, or an alias, as the request named it. */
  model: string;
  /** The tokens that Temper estimated for the request; see `charge/request-size.ts`. */
  estimated: number;
  /** The tokens that the provider counted. */
  counted: number;
  /** The smallest estimate of a request that the provider refused as too long. */
  refused?: number;
}

export type ModelMessage =
  /**
   * `message`: id of the delivered message with this text. `summary`: the text stands in place of the first `items` items of the
   * session, which have these origins. All are stored with the session, never sent to a provider.
   */
  | {
      role: 'user';
      text: string;
      message?: string;
      origin?: ItemOrigin;
      summary?: { items: number; origins?: ItemOrigin[] };
    }
  /** `request`: the count of the request that this message answers. Stored with the session, never sent to a provider. */
  | { role: 'assistant'; text: string; toolCalls: ToolCall[]; request?: CountedRequest }
  /**
   * `journal`: an entry of the journal of a run of code, and no result. `memory`: the memory of the session after a run. They and the
   * origin are stored with the session and never sent to a provider.
   */
  | {
      role: 'tool';
      toolCallId: string;
      name: string;
      text: string;
      isError: boolean;
      origin?: ItemOrigin;
      journal?: true;
      memory?: string;
    };

/** A request without its model. */
export interface ModelInput {
  system: string;
  messages: ModelMessage[];
  tools: ToolSpec[];
  /** Enforced by the provider; the ledger reserves this many output tokens. */
  maxOutputTokens: number;
  temperature?: number;
  /** Requests one JSON object, as text. */
  responseFormat?: 'json';
}

export interface ModelRequest extends ModelInput {
  /** `provider/model`, or an alias. */
  model: string;
}

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  /** Of the input: read from the prompt cache of the provider. */
  cachedInputTokens: number;
  /** Of the input: stored in that cache, where the provider charges for it. */
  cacheCreationInputTokens?: number;
}

export type StopReason = 'stop' | 'tool-calls' | 'length' | 'refusal' | 'other';

/**
 * Events of one answer as they arrive. A stream ends with exactly one `end`, or throws a TemperError with a `TEMPER_MODEL_*` code,
 * also after the first events. A `tool-call` is emitted only when its arguments are complete, and no `tool-call` is emitted when
 * the answer was truncated (`stopReason: 'length'`): a truncated call must not be executed.
 */
export type ModelEvent =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; call: ToolCall }
  /** An action of the provider itself, such as a hosted tool. Recorded in the trace, never executed. */
  | { type: 'provider'; name: string; data: Json }
  | { type: 'end'; stopReason: StopReason; usage: TokenUsage; model: string };

/** A call that failed before its first event and is made again: with the same model, or with a fallback. */
export interface RepeatedCall {
  /** The `provider/model` of the next attempt. */
  model: string;
  /** The number of the next attempt with this model, from 1. */
  attempt: number;
  /** Why the attempt before failed. */
  code: ErrorCode;
  /** The wait before the next attempt. */
  milliseconds: number;
}

export interface ModelCallOptions extends CallOptions {
  /** Called before each repetition. Must not throw. */
  readonly onRepeat?: (repeated: RepeatedCall) => void;
}

export interface Model {
  /** Streams one answer. Throws TEMPER_MODEL_*, and TEMPER_CANCELLED when `op.signal` is aborted. Not idempotent: each call is billed. */
  stream(request: ModelRequest, op: ModelCallOptions): AsyncIterable<ModelEvent>;
  /** One vector per text, in the same order. Adapters without embeddings throw TEMPER_MODEL_NOT_FOUND. */
  embed(texts: string[], op: CallOptions): Promise<Float32Array[]>;
}
