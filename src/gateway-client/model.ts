import type { EngineModels } from '../engine/ports.ts';
import { isErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../lib/json.ts';
import type { Model, ModelCallOptions, ModelEvent, RepeatedCall, StopReason, ToolCall } from '../models/port.ts';
import type { GatewayRequest, GatewayClient } from './gateway-client.ts';
import {
  requireList,
  malformedResponse,
  requireNumber,
  requireObject,
  requireText,
} from '../gateway-api/response-parsing.ts';
import {
  ACCEPTED_LINES_HEADER,
  type Assignment,
  POD_API_PATHS,
  RETRY_LINES,
  type SessionAppend,
  type StreamRequest,
  type ToolAuditModelCall,
} from '../gateway-api/pod-api.ts';

/** Milliseconds until the response headers; a reasoning model may take long before its first token. */
const TIMEOUT_MS = 150_000;
const STOP_REASONS: ReadonlySet<string> = new Set<StopReason>(['stop', 'tool-calls', 'length', 'refusal', 'other']);

export interface RemoteModelOptions {
  client: GatewayClient;
  deliveryToken: () => string;
  /** The items of the session that the call carries; undefined for none. */
  append: () => Promise<SessionAppend | undefined>;
  /** The gateway has stored these items. */
  onStored: (append: SessionAppend | undefined) => void;
  onAnswerSignature: (signature: string) => void;
}

/** The models behind the gateway. Each call is charged to the current message, and carries its items that are not stored yet. */
export function remoteModel(options: RemoteModelOptions): Model {
  const { client } = options;
  return {
    async *stream(request, op) {
      const append = await options.append();
      const carried = append === undefined ? {} : { append };
      const body: StreamRequest = { deliveryToken: options.deliveryToken(), ...carried, request };
      const headers = { [ACCEPTED_LINES_HEADER]: RETRY_LINES };
      const path = POD_API_PATHS.modelStream;
      const call = { method: 'POST', path, body, headers, op, timeoutMs: TIMEOUT_MS } as const;
      for await (const event of modelEvents(client, call, options.onAnswerSignature)) {
        // The gateway sends the end when the items are stored.
        if (event.type === 'end') options.onStored(append);
        yield event;
      }
    },
    async embed(texts, op) {
      const answer = await client.call({ method: 'POST', path: POD_API_PATHS.modelEmbed, body: { texts }, op });
      return requireList(member(answer, 'vectors'), 'vectors').map((vector) =>
        Float32Array.from(requireList(vector, 'vectors'), Number),
      );
    },
  };
}

const DEFAULT_CONTEXT_TOKENS = 128_000;

/** The models of an assignment for an engine. The gateway charges each call and applies the fallbacks of the agent. */
export function engineModels(models: Assignment['models'], model: Model): EngineModels {
  const byName = new Map(Object.entries(models));
  const byResolvedName = new Map([...byName.values()].map((found) => [found.resolved, found]));
  return {
    model,
    withFallbacks: () => model,
    resolve: (name) => byName.get(name)?.resolved ?? name,
    contextTokens: (name) => (byName.get(name) ?? byResolvedName.get(name))?.contextTokens ?? DEFAULT_CONTEXT_TOKENS,
  };
}

/** The models for the fresh agent of an audit, which are charged to the audit that the pod was assigned. */
export function auditModel(client: GatewayClient, round: number): Model {
  return {
    stream(request, op) {
      const body: ToolAuditModelCall = { round, request };
      const path = POD_API_PATHS.verificationModelStream;
      return modelEvents(client, { method: 'POST', path, body, op, timeoutMs: TIMEOUT_MS });
    },
    embed: () => Promise.reject(new TemperError('TEMPER_POLICY_DENIED', 'a fresh agent has no memory to search')),
  };
}

/** Yields `end` after the stream: a reader that stops earlier would make the connection unusable for the next call. */
async function* modelEvents(
  client: GatewayClient,
  call: GatewayRequest & { readonly op: ModelCallOptions },
  onAnswerSignature: (signature: string) => void = () => undefined,
): AsyncGenerator<ModelEvent> {
  let end: ModelEvent | undefined;
  try {
    for await (const line of client.lines(call)) {
      const repeated = repeatedCallIn(line);
      if (repeated !== undefined) {
        call.op.onRepeat?.(repeated);
        continue;
      }
      const event = eventIn(line);
      const signature = event.type === 'end' ? member(line, 'signature') : undefined;
      if (typeof signature === 'string') onAnswerSignature(signature);
      if (event.type === 'end') end = event;
      else yield event;
    }
  } catch (error) {
    // A response with its end event is complete, even if the connection fails afterwards.
    if (end === undefined) throw error;
  }
  if (end === undefined) {
    throw new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'the response of the model was cut off', { retry: 'backoff' });
  }
  yield end;
}

/** Undefined for a line of another type. */
function repeatedCallIn(line: Json): RepeatedCall | undefined {
  const value = requireObject(line, 'event');
  if (value['type'] !== 'retry') return undefined;
  const { code } = value;
  return {
    model: requireText(value, 'model', 'event'),
    attempt: requireNumber(value, 'attempt', 'event'),
    code: isErrorCode(code) ? code : 'TEMPER_MODEL_UNAVAILABLE',
    milliseconds: requireNumber(value, 'milliseconds', 'event'),
  };
}

function eventIn(line: Json): ModelEvent {
  const value = requireObject(line, 'event');
  switch (value['type']) {
    case 'text':
    case 'reasoning':
      return { type: value['type'], text: requireText(value, 'text', 'event') };
    case 'tool-call':
      return { type: 'tool-call', call: toolCallIn(value['call']) };
    case 'provider':
      return { type: 'provider', name: requireText(value, 'name', 'event'), data: value['data'] ?? null };
    case 'end':
      return endIn(value);
    case 'error':
      throw failureIn(value);
    default:
      throw malformedResponse('event.type');
  }
}

function toolCallIn(value: Json | undefined): ToolCall {
  const call = requireObject(value, 'event.call');
  const [id, name, written] = ['id', 'name', 'arguments'].map((key) => requireText(call, key, 'event.call'));
  return { id: id ?? '', name: name ?? '', arguments: written ?? '' };
}

function endIn(value: JsonObject): ModelEvent {
  const usage = isJsonObject(value['usage']) ? value['usage'] : {};
  const stopReason = requireText(value, 'stopReason', 'event');
  if (!STOP_REASONS.has(stopReason)) throw malformedResponse('event.stopReason');
  return {
    type: 'end',
    stopReason: stopReason as StopReason,
    usage: {
      inputTokens: requireNumber(usage, 'inputTokens', 'usage'),
      outputTokens: requireNumber(usage, 'outputTokens', 'usage'),
      cachedInputTokens: requireNumber(usage, 'cachedInputTokens', 'usage'),
    },
    model: requireText(value, 'model', 'event'),
  };
}

function failureIn(value: JsonObject): TemperError {
  const { code, retry } = value;
  const message = printable(requireText(value, 'message', 'event'), 2_000);
  const mayRetry = retry === 'backoff' || (typeof retry === 'number' && retry >= 0);
  return new TemperError(isErrorCode(code) ? code : 'TEMPER_MODEL_UNAVAILABLE', message, mayRetry ? { retry } : {});
}
