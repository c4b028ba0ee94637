import type { Json } from '../../lib/json.ts';
import type { ModelEvent, ModelInput, TokenUsage } from '../port.ts';

/** Converts the parsed wire events of one answer to model events. One instance per answer. */
export interface AnswerNormalizer {
  /** Handles one event of a stream. Throws a TemperError for an error event or an invalid event. */
  feed(event: Json): ModelEvent[];
  /** Handles the JSON body of an answer that was not streamed. */
  readBody(body: Json): ModelEvent[];
  /** True when the provider has marked the answer as complete. The rest of the stream is not read. */
  readonly isComplete: boolean;
  /** Returns the tool calls and the one `end` event. Throws when the answer ended before it was complete. */
  finish(): ModelEvent[];
  /** What the provider has counted so far; undefined until it has counted the input. */
  readonly usage: TokenUsage | undefined;
}

/** The vendor-specific part of an adapter. */
export interface WireFormat {
  /** Sends the request with the vendor's SDK and returns the raw response. */
  send(request: ModelInput, model: string, connection: ProviderConnection): Promise<WireResponse>;
  normalizer(provider: string, offeredTools: readonly string[]): AnswerNormalizer;
  embed?: (texts: string[], connection: ProviderConnection) => Promise<Embeddings>;
}

export interface Embeddings {
  vectors: number[][];
  /** As counted by the provider; 0 when it reports no count. */
  inputTokens: number;
}

export interface ProviderConnection {
  key: string;
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
}

export interface WireResponse {
  response: Response;
  /** The events of the response, as the SDK decodes them. */
  events(): AsyncIterable<unknown>;
}
