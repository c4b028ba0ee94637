import { isErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../lib/json.ts';
import type { Model, ModelEvent, StopReason, ToolCall } from '../models/port.ts';
import type { GatewayCall, GatewayClient } from './gateway-client.ts';
import { listIn, malformed, numberIn, objectIn, textIn } from './reading.ts';
import { PATHS, type StreamRequest } from './wire.ts';

/** Milliseconds until the response headers; a reasoning model may take long before its first token. */
const TIMEOUT_MS = 150_000;
const STOP_REASONS: ReadonlySet<string> = new Set<StopReason>(['stop', 'tool-calls', 'length', 'refusal', 'other']);

/** The models behind the gateway. Each call is charged to the current message. */
export function remoteModel(options: { client: GatewayClient; lease: () => string }): Model {
  const { client } = options;
  return {
    async *stream(request, op) {
      const body: StreamRequest = { lease: options.lease(), request };
      const call: GatewayCall = { method: 'POST', path: PATHS.modelStream, body, op, patience: TIMEOUT_MS };
      let end: ModelEvent | undefined;
      try {
        for await (const line of client.lines(call)) {
          const event = eventIn(line);
          // Yields `end` after the stream: a reader that stops earlier would make the connection unusable for the next call.
          if (event.type === 'end') end = event;
          else yield event;
        }
      } catch (error) {
        // A response with its end event is complete, even if the connection fails afterwards.
        if (end === undefined) throw error;
      }
      if (end === undefined) {
        throw new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'the response of the model was cut off', {
          retry: 'backoff',
        });
      }
      yield end;
    },
    async embed(texts, op) {
      const answer = await client.call({ method: 'POST', path: PATHS.modelEmbed, body: { texts }, op });
      return listIn(member(answer, 'vectors'), 'vectors').map((vector) =>
        Float32Array.from(listIn(vector, 'vectors'), Number),
      );
    },
  };
}

function eventIn(line: Json): ModelEvent {
  const value = objectIn(line, 'event');
  switch (value['type']) {
    case 'text':
    case 'reasoning':
      return { type: value['type'], text: textIn(value, 'text', 'event') };
    case 'tool-call':
      return { type: 'tool-call', call: toolCallIn(value['call']) };
    case 'provider':
      return { type: 'provider', name: textIn(value, 'name', 'event'), data: value['data'] ?? null };
    case 'end':
      return endIn(value);
    case 'error':
      throw failureIn(value);
    default:
      throw malformed('event.type');
  }
}

function toolCallIn(value: Json | undefined): ToolCall {
  const call = objectIn(value, 'event.call');
  const [id, name, written] = ['id', 'name', 'arguments'].map((key) => textIn(call, key, 'event.call'));
  return { id: id ?? '', name: name ?? '', arguments: written ?? '' };
}

function endIn(value: JsonObject): ModelEvent {
  const usage = isJsonObject(value['usage']) ? value['usage'] : {};
  const stopReason = textIn(value, 'stopReason', 'event');
  if (!STOP_REASONS.has(stopReason)) throw malformed('event.stopReason');
  return {
    type: 'end',
    stopReason: stopReason as StopReason,
    usage: {
      inputTokens: numberIn(usage, 'inputTokens', 'usage'),
      outputTokens: numberIn(usage, 'outputTokens', 'usage'),
      cachedInputTokens: numberIn(usage, 'cachedInputTokens', 'usage'),
    },
    model: textIn(value, 'model', 'event'),
  };
}

function failureIn(value: JsonObject): TemperError {
  const { code } = value;
  const message = printable(textIn(value, 'message', 'event'), 2_000);
  return new TemperError(isErrorCode(code) ? code : 'TEMPER_MODEL_UNAVAILABLE', message);
}
