import type { Duplex } from 'node:stream';
import { drained } from '../../lib/async/drained.ts';
import { LineSplitter } from '../../lib/async/line-splitter.ts';
import { messageOf } from '../../lib/errors.ts';
import { isCount, isJsonObject, type Json, type JsonObject, member, parseUntrustedJson } from '../../lib/json.ts';
import type { FetchHandler } from '../endpoint/model-endpoint.ts';
import { ORIGIN } from './origin.ts';

/** Of one request: the largest body that a handler reads, as JSON text. */
const MAX_LINE_BYTES = 20 * 1_024 * 1_024;
const MAX_OPEN_REQUESTS = 16;

/**
 * Answers the requests of an agent that arrive as lines on the stream; see `agent-fetch.ts`. `onViolation` is called once for a line that is none. The
 * requests that are open together have at most `maxBytes`: a further one fails.
 */
export function serveFetchChannel(
  stream: Duplex,
  handler: FetchHandler,
  onViolation: (reason: string) => void,
  maxBytes = MAX_LINE_BYTES,
): void {
  const open = new Map<number, AbortController>();
  let openBytes = 0;
  const lines = new LineSplitter(Math.min(maxBytes, MAX_LINE_BYTES), () => new Error('a request is too large'));
  const end = (reason?: string): void => {
    for (const controller of open.values()) controller.abort(new Error('the agent has ended'));
    open.clear();
    if (reason === undefined || stream.destroyed) return;
    stream.destroy();
    onViolation(reason);
  };
  const receive = (line: string): void => {
    const frame = parseFrame(line);
    if ('abort' in frame) {
      open.get(frame.id)?.abort(new Error('the agent left the request'));
      return;
    }
    if (open.has(frame.id)) throw new Error('a request has the id of an open one');
    if (open.size >= MAX_OPEN_REQUESTS) throw new Error(`more than ${MAX_OPEN_REQUESTS} requests are open`);
    const controller = new AbortController();
    open.set(frame.id, controller);
    openBytes += line.length;
    const served = openBytes > maxBytes ? tooManyBytes : handler;
    void respond(stream, frame, served, controller.signal).finally(() => {
      openBytes -= line.length;
      if (open.get(frame.id) === controller) open.delete(frame.id);
    });
  };
  stream.on('data', (chunk: Buffer) => {
    try {
      for (const line of lines.push(chunk)) receive(line);
    } catch (error) {
      end(messageOf(error, 200));
    }
  });
  stream.on('error', () => end());
  stream.on('close', () => end());
}

const tooManyBytes: FetchHandler = () => Promise.reject(new Error('the open requests have too many bytes'));

interface RequestFrame {
  id: number;
  request: { method: string; path: string; headers: [string, string][]; body: string };
}

function parseFrame(line: string): RequestFrame | { id: number; abort: true } {
  const frame = parseUntrustedJson(line);
  const id = member(frame, 'id');
  if (!isJsonObject(frame) || !isCount(id)) throw new Error('a line of the agent is not a request');
  if (member(frame, 'abort') === true) return { id, abort: true };
  const [method, path, body] = [textOf(frame, 'method'), textOf(frame, 'path'), textOf(frame, 'body')];
  if (!/^[A-Z]{1,10}$/.test(method) || !path.startsWith('/')) throw new Error('a request has no method or no path');
  return { id, request: { method, path, headers: headersOf(member(frame, 'headers')), body } };
}

function textOf(frame: JsonObject, name: string): string {
  const value = member(frame, name);
  if (typeof value !== 'string') throw new Error(`a request has no ${name}`);
  return value;
}

function headersOf(headers: Json | undefined): [string, string][] {
  if (!Array.isArray(headers) || headers.length > 100) throw new Error('a request has no headers or too many');
  return headers.map((header) => {
    const [name, value] = Array.isArray(header) ? header : [];
    if (typeof name !== 'string' || typeof value !== 'string') throw new Error('a header is not a pair of texts');
    return [name, value];
  });
}

/** Writes the response as frames and waits while the agent does not read. Never rejects. */
async function respond(
  stream: Duplex,
  { id, request }: RequestFrame,
  handler: FetchHandler,
  signal: AbortSignal,
): Promise<void> {
  const send = async (frame: JsonObject): Promise<void> => {
    if (stream.destroyed || signal.aborted) throw new Error('the request has ended');
    if (!stream.write(`${JSON.stringify({ id, ...frame })}\n`)) await drained(stream);
  };
  try {
    const response = await handler(requestOf(request, signal));
    await send({ status: response.status, headers: [...response.headers] });
    for await (const text of textsOf(response)) await send({ text });
    await send({ end: true });
  } catch (error) {
    await send({ error: messageOf(error, 200) }).catch(() => undefined);
  }
}

function requestOf({ method, path, headers, body }: RequestFrame['request'], signal: AbortSignal): Request {
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(new URL(path, ORIGIN), { method, headers, signal, ...(hasBody ? { body } : {}) });
}

async function* textsOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return;
  for await (const text of body.pipeThrough(new TextDecoderStream())) yield text;
}
