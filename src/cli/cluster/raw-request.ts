import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { ClusterAccess } from '../../kube/client/cluster-access.ts';
import { userAgent } from '../../kube/client/user-agent.ts';
import { LineSplitter } from '../../lib/async/line-splitter.ts';
import { readBody } from '../../lib/async/read-body.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';

/** A raw request to the API server, for what the object client does not support: tables, logs and the service proxy. */
export interface RawRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path with query. */
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RawResponse {
  readonly status: number;
  /** The whole body; at most MAX_BODY_BYTES. */
  readonly text: string;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;
const RESPONSE_TIMEOUT_MS = 30_000;

/** Sends a request and returns the response with any status. Throws TEMPER_KUBE_UNREACHABLE or TEMPER_TIMEOUT without a response. */
export async function sendRawRequest(
  access: ClusterAccess,
  call: RawRequest,
  signal: AbortSignal,
): Promise<RawResponse> {
  const response = await open(access, call, signal);
  return { status: response.statusCode ?? 0, text: await textOf(response, signal) };
}

/**
 * Streams the lines of a successful response, or returns the error response as `errorResponse`. With `idleMilliseconds`, a connection without
 * data for that long is closed.
 */
export async function streamRawRequest(
  access: ClusterAccess,
  call: RawRequest,
  signal: AbortSignal,
  idleMilliseconds?: number,
): Promise<{ errorResponse: RawResponse } | { lines: AsyncGenerator<string> }> {
  const response = await open(access, call, signal);
  if (idleMilliseconds !== undefined) response.setTimeout(idleMilliseconds, () => response.destroy());
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return { lines: linesOf(response) };
  return { errorResponse: { status, text: await textOf(response, signal) } };
}

async function open(access: ClusterAccess, call: RawRequest, signal: AbortSignal): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const { headers, tls } = await access.credentials();
  const { server } = access;
  const path = `${server.pathname.replace(/\/$/, '')}${call.path}`;
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = httpsRequest(new URL(server.origin), {
    method: call.method,
    path,
    ...tls,
    signal,
    headers: {
      accept: 'application/json',
      'user-agent': userAgent('cli'),
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    },
  });
  const timer = setTimeout(() => {
    const message = `${call.method} ${withoutQuery(call.path)}: no response within ${RESPONSE_TIMEOUT_MS / 1_000} s`;
    request.destroy(new TemperError('TEMPER_TIMEOUT', message, { retry: 'backoff' }));
  }, RESPONSE_TIMEOUT_MS);
  request.once('response', resolve).once('error', reject).end(body);
  try {
    return await promise;
  } catch (error) {
    throw requestError(error, server.host, signal);
  } finally {
    clearTimeout(timer);
  }
}

function requestError(error: unknown, host: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof TemperError) return error;
  const message = `${host} cannot be reached: ${messageOf(error, 500)}`;
  return new TemperError('TEMPER_KUBE_UNREACHABLE', message, { cause: error, retry: 'backoff' });
}

function withoutQuery(path: string): string {
  return path.split('?')[0] ?? path;
}

async function textOf(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const tooLarge = (): Error => new Error(`the response is longer than ${MAX_BODY_BYTES} bytes`);
  const timer = setTimeout(() => response.destroy(new Error('the response stalled')), RESPONSE_TIMEOUT_MS);
  try {
    return await readBody(response, MAX_BODY_BYTES, tooLarge);
  } catch (error) {
    throw requestError(error, 'the API server', signal);
  } finally {
    clearTimeout(timer);
  }
}

const MAX_LINE_BYTES = 1024 * 1024;

/** Lines without line ends. A longer line is truncated at MAX_LINE_BYTES. A broken connection ends the lines without an error. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  const splitter = new LineSplitter(MAX_LINE_BYTES);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) yield* splitter.push(chunk);
  } catch {
    // The caller continues from the last line it received.
    return;
  } finally {
    response.destroy();
  }
  const rest = splitter.rest();
  if (rest !== '') yield rest;
}
