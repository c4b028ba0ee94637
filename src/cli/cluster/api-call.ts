import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { ClusterAccess } from '../../kube/cluster-access.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';

/** A request the client for objects has no form for: tables, logs, and what goes through the proxy to a service. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path with its query. */
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiReply {
  readonly status: number;
  /** Cut at the limit of an answer. */
  readonly text: string;
}

const LARGEST_ANSWER = 16 * 1024 * 1024;
const ANSWER_MILLISECONDS = 30_000;

/** The whole answer, whatever its status. Throws TEMPER_KUBE_UNREACHABLE or TEMPER_TIMEOUT when none came. */
export async function callApi(access: ClusterAccess, call: ApiCall, signal: AbortSignal): Promise<ApiReply> {
  const response = await open(access, call, signal);
  return { status: response.statusCode ?? 0, text: await textOf(response, signal) };
}

/**
 * The lines of a success as they arrive, or what was refused. With `idleMilliseconds`, a connection that says nothing for as long counts
 * as broken.
 */
export async function streamApi(
  access: ClusterAccess,
  call: ApiCall,
  signal: AbortSignal,
  idleMilliseconds?: number,
): Promise<{ refusal: ApiReply } | { lines: AsyncGenerator<string> }> {
  const response = await open(access, call, signal);
  if (idleMilliseconds !== undefined) response.setTimeout(idleMilliseconds, () => response.destroy());
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return { lines: linesOf(response) };
  return { refusal: { status, text: await textOf(response, signal) } };
}

async function open(access: ClusterAccess, call: ApiCall, signal: AbortSignal): Promise<IncomingMessage> {
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
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    },
  });
  const timer = setTimeout(() => {
    const message = `${call.method} ${withoutQuery(call.path)}: no answer within ${ANSWER_MILLISECONDS / 1_000} s`;
    request.destroy(new TemperError('TEMPER_TIMEOUT', message, { retry: 'backoff' }));
  }, ANSWER_MILLISECONDS);
  request.once('response', resolve).once('error', reject).end(body);
  try {
    return await promise;
  } catch (error) {
    throw failure(error, server.host, signal);
  } finally {
    clearTimeout(timer);
  }
}

function failure(error: unknown, host: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof TemperError) return error;
  const message = `${host} cannot be reached: ${messageOf(error, 500)}`;
  return new TemperError('TEMPER_KUBE_UNREACHABLE', message, { cause: error, retry: 'backoff' });
}

function withoutQuery(path: string): string {
  return path.split('?')[0] ?? path;
}

async function textOf(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => response.destroy(new Error('the answer stalled')), ANSWER_MILLISECONDS);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > LARGEST_ANSWER) throw new Error(`the answer is longer than ${LARGEST_ANSWER} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw failure(error, 'the API server', signal);
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const LONGEST_LINE = 1024 * 1024;

/** Lines without their ends; what is longer than a megabyte is cut there. A connection that breaks ends the lines. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  response.setEncoding('utf8');
  let rest = '';
  try {
    for await (const piece of response as AsyncIterable<string>) {
      const lines = (rest + piece).split('\n');
      rest = (lines.pop() ?? '').slice(0, LONGEST_LINE);
      yield* lines;
    }
  } catch {
    // Who reads goes on from the last line it has.
    return;
  } finally {
    response.destroy();
  }
  if (rest !== '') yield rest;
}
