import { messageOf, isTemperError, TemperError } from '../../lib/errors.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { readBody } from '../../lib/async/read-body.ts';
import { isJsonObject, jsonExcess, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import type { ModelEvent, ToolCall, TokenUsage } from '../../models/port.ts';
import { type FilledAnswer, formatServerEvent } from '../../models/replay/wire/wire.ts';
import { chatFormat } from './chat-format.ts';
import { messagesFormat } from './messages-format.ts';
import type { ServedFormat, ServedRequest } from './served-format.ts';

/** Makes one model call for the agent: with its model, charged to it. Throws the errors of `Model`. */
export type ServedModel = (request: ServedRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;

/** A handler of the Fetch standard. Never rejects. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** The one name that the endpoint lists. A request may name any other: the manifest chooses the model. */
const SERVED_MODEL = 'temper';

const MAX_BODY_BYTES = 8 * 1_024 * 1_024;
const JSON_LIMITS = { values: 500_000, depth: 64 };
/** Calls of one agent that are in work at the same time. */
const MAX_CONCURRENT_CALLS = 4;

const FORMATS: ReadonlyMap<string, ServedFormat> = new Map([
  ['/v1/chat/completions', chatFormat],
  ['/v1/messages', messagesFormat],
]);

/** Serves the model of an agent in the wire formats of two providers, to a program that Temper does not trust. */
export function createModelEndpoint(model: ServedModel, newId: () => string): FetchHandler {
  let running = 0;
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (request.method === 'GET' && pathname === '/v1/models') return modelList();
    const format = FORMATS.get(pathname);
    if (format === undefined || request.method !== 'POST')
      return errorResponse(chatFormat, 404, 'not_found_error', `${request.method} ${pathname} is not served`);
    if (running >= MAX_CONCURRENT_CALLS)
      return errorResponse(format, 429, 'rate_limit_error', `${MAX_CONCURRENT_CALLS} model calls are in work already`);
    running += 1;
    let isReleased = false;
    const release = (): void => {
      if (!isReleased) running -= 1;
      isReleased = true;
    };
    return answer(format, request, model, newId, release).catch((error: unknown) => {
      release();
      return failure(format, error);
    });
  };
}

async function answer(
  format: ServedFormat,
  request: Request,
  model: ServedModel,
  newId: () => string,
  release: () => void,
): Promise<Response> {
  const asked = format.read(await jsonBody(request));
  const id = newId();
  const events = model(asked, request.signal)[Symbol.asyncIterator]();
  // Before the status line is sent, so that a refusal has its status.
  const first = await events.next();
  if (first.done === true) throw new TemperError('TEMPER_MODEL_FORMAT', 'the answer of the model has no end');
  const all = withFirst(first.value, events);
  if (asked.isStream) return new Response(streamBody(format, asked, id, all, release), { headers: STREAM_HEADERS });
  try {
    return Response.json(format.body(await wholeAnswer(id, all)));
  } finally {
    release();
  }
}

const STREAM_HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };

async function* withFirst(first: ModelEvent, rest: AsyncIterator<ModelEvent>): AsyncGenerator<ModelEvent> {
  try {
    yield served(first);
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield served(next.value);
  } finally {
    await rest.return?.();
  }
}

/** Clients of the providers do not know an end for other reasons. */
function served(event: ModelEvent): ModelEvent {
  return event.type === 'end' && event.stopReason === 'other' ? { ...event, stopReason: 'stop' } : event;
}

function streamBody(
  format: ServedFormat,
  request: ServedRequest,
  id: string,
  events: AsyncGenerator<ModelEvent>,
  release: () => void,
): ReadableStream<Uint8Array> {
  const stream = format.stream({ id, model: SERVED_MODEL }, request);
  const encoder = new TextEncoder();
  let pending = stream.start();
  return new ReadableStream({
    async pull(controller) {
      try {
        while (pending.length === 0) {
          const next = await events.next();
          if (next.done === true) {
            release();
            controller.close();
            return;
          }
          pending = stream.next(next.value);
        }
      } catch (error) {
        const { type } = statusOf(error);
        pending = [{ name: 'error', data: format.error(type, publicMessage(error)) }];
        await events.return(undefined);
      }
      controller.enqueue(encoder.encode(pending.map(formatServerEvent).join('')));
      pending = [];
    },
    async cancel() {
      release();
      await events.return(undefined);
    },
  });
}

async function wholeAnswer(id: string, events: AsyncIterable<ModelEvent>): Promise<FilledAnswer> {
  const calls: ToolCall[] = [];
  let [text, reasoning] = ['', ''];
  let usage: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  for await (const event of events) {
    if (event.type === 'text') text += event.text;
    else if (event.type === 'reasoning') reasoning += event.text;
    else if (event.type === 'tool-call') calls.push(event.call);
    else if (event.type === 'end') {
      ({ usage } = event);
      return { id, model: SERVED_MODEL, text, reasoning, calls, stopReason: event.stopReason, usage };
    }
  }
  throw new TemperError('TEMPER_MODEL_FORMAT', 'the answer of the model has no end');
}

async function jsonBody(request: Request): Promise<JsonObject> {
  const tooLarge = (): TemperError => refusedBody(`is larger than ${MAX_BODY_BYTES} bytes`);
  const text = request.body === null ? '' : await readBody(request.body, MAX_BODY_BYTES, tooLarge);
  const excess = jsonExcess(text, JSON_LIMITS);
  if (excess !== undefined) throw refusedBody(`has more than ${JSON_LIMITS[excess]} ${LIMIT_NAMES[excess]}`);
  try {
    const body = parseUntrustedJson(text);
    if (isJsonObject(body)) return body;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw refusedBody('is not a JSON object');
}

const LIMIT_NAMES = { values: 'values', depth: 'levels' } as const;

function refusedBody(problem: string): TemperError {
  return new TemperError('TEMPER_MODEL_FORMAT', `the body ${problem}`);
}

function modelList(): Response {
  return Response.json({
    object: 'list',
    data: [{ id: SERVED_MODEL, object: 'model', created: 0, owned_by: 'temper' }],
  });
}

function failure(format: ServedFormat, error: unknown): Response {
  const { status, type } = statusOf(error);
  return errorResponse(format, status, type, publicMessage(error));
}

/** Temper has repeated the call where that helps, so that the client of the agent must not. */
function errorResponse(format: ServedFormat, status: number, type: string, message: string): Response {
  return Response.json(format.error(type, message), { status, headers: { 'x-should-retry': 'false' } });
}

const STATUSES: Partial<Record<ErrorCode, { status: number; type: string }>> = {
  TEMPER_MODEL_FORMAT: { status: 400, type: 'invalid_request_error' },
  TEMPER_MODEL_CONTEXT_OVERFLOW: { status: 400, type: 'context_length_exceeded' },
  TEMPER_POLICY_DENIED: { status: 403, type: 'permission_error' },
  TEMPER_QUOTA_EXCEEDED: { status: 429, type: 'insufficient_quota' },
  TEMPER_TURN_LIMIT: { status: 429, type: 'insufficient_quota' },
  TEMPER_MODEL_RATE_LIMITED: { status: 429, type: 'rate_limit_error' },
  TEMPER_MODEL_TIMEOUT: { status: 504, type: 'timeout_error' },
};

function statusOf(error: unknown): { status: number; type: string } {
  const known = isTemperError(error) ? STATUSES[error.code] : undefined;
  return known ?? { status: 503, type: 'api_error' };
}

/** Another error is a defect, whose text is not for the program. */
function publicMessage(error: unknown): string {
  return isTemperError(error) ? `${error.code}: ${messageOf(error, 1_000)}` : 'TEMPER_INTERNAL';
}
