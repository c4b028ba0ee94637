import type { Json, JsonObject } from '../../../lib/json.ts';
import type { StopReason, TokenUsage, ToolCall } from '../../port.ts';
import type { ReplayConversation } from '../conversation.ts';

/** An answer of the script with its references filled in. */
export interface FilledAnswer {
  id: string;
  model: string;
  text: string;
  reasoning: string;
  /** With stop reason `length` the arguments of the last call are cut in the middle. */
  calls: ToolCall[];
  stopReason: StopReason;
  usage: TokenUsage;
  /** Sent instead of the end of the answer. */
  inBandError?: { type: string; message: string };
}

/** One wire format, on the server side. */
export interface ReplayWireFormat {
  /** Reads a request body. Throws TEMPER_MODEL_FORMAT for a member that is missing or of another type. */
  read(body: JsonObject): ReplayConversation;
  /** The answer as one JSON body. */
  body(answer: FilledAnswer): Json;
  /** The answer as server-sent events. */
  events(answer: FilledAnswer): ServerSentEvent[];
  /** The body of an error response. */
  error(type: string, message: string): Json;
}

export interface ServerSentEvent {
  name?: string;
  /** JSON, or the text `[DONE]` that ends a chat stream. */
  data: Json;
}

export function formatServerEvent(event: ServerSentEvent): string {
  const data = event.data === '[DONE]' ? event.data : JSON.stringify(event.data);
  return `${event.name === undefined ? '' : `event: ${event.name}\n`}data: ${data}\n\n`;
}

/** Cuts text as a model would stream it, never inside a surrogate pair. */
export function textChunks(text: string, size: number): string[] {
  const characters = Array.from(text);
  const result: string[] = [];
  for (let start = 0; start < characters.length; start += size)
    result.push(characters.slice(start, start + size).join(''));
  return result;
}
