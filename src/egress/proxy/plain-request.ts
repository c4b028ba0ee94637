import { type ClientRequest, type IncomingMessage, request as sendRequest, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { TemperError } from '../../lib/errors.ts';
import type { Target } from '../../net/targets.ts';
import { headersForClient, headersForTarget } from '../request/headers.ts';
import { plainTarget } from '../request/target.ts';
import { Exchange, type ExchangeDeps } from './exchange.ts';
import { metered } from './metered.ts';
import type { OpenConnection } from './open-connection.ts';
import { refuseRequest } from './refusal.ts';

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const MAX_RESPONSE_HEADER_BYTES = 16_384;

/** Serves one request for an `http` URL over a connection of its own. The client follows redirects, each with a request. Never rejects. */
export async function servePlainRequest(
  request: IncomingMessage,
  response: ServerResponse,
  deps: ExchangeDeps,
): Promise<void> {
  const exchange = new Exchange(request, request.socket, deps);
  let failure: unknown;
  try {
    const target = plainTarget(request.url ?? '');
    if (!METHODS.has(request.method ?? '')) {
      throw new TemperError('TEMPER_FETCH_DENIED', `the method is not one of ${[...METHODS].join(', ')}`);
    }
    const headers = headersForTarget(request.rawHeaders, target);
    const { connection, upstream, signal } = await exchange.open(target);
    const forwarded = { target, headers, connection, upstream, signal };
    await forward(request, response, forwarded);
  } catch (error) {
    failure = error;
  }
  const error = exchange.close(failure);
  if (error === undefined) return;
  if (response.headersSent) response.destroy();
  else refuseRequest(response, error);
}

interface Forwarded {
  target: Target;
  headers: readonly string[];
  connection: OpenConnection;
  upstream: Socket;
  signal: AbortSignal;
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  { target, headers, connection, upstream, signal }: Forwarded,
): Promise<void> {
  const sending = sendRequest({
    createConnection: () => upstream,
    method: request.method ?? 'GET',
    path: `${target.url.pathname}${target.url.search}`,
    headers: [...headers],
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    signal,
  });
  sending.on('error', () => undefined);
  await connection.count('sent', lengthOf(headers));
  // A target may answer before it has the whole body; the end of the response decides.
  pipeline(request, metered(connection, 'sent'), sending, { signal }).catch(() => undefined);
  const received = await responseTo(sending, signal);
  await connection.count('received', lengthOf(received.rawHeaders));
  response.writeHead(received.statusCode ?? 502, headersForClient(received.rawHeaders));
  await pipeline(received, metered(connection, 'received'), response, { signal });
}

/** Throws TEMPER_FETCH_FAILED when the target switches protocols: Node then closes the request without a response and without an error. */
async function responseTo(sending: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const message = 'the target switched protocols (101), which the proxy refuses; use a URL that answers over HTTP/1.1';
  const switched = new TemperError('TEMPER_FETCH_FAILED', message);
  const closed = new Promise<never>((_resolve, reject) => sending.once('close', () => reject(switched)));
  const response = once(sending, 'response', { signal }) as Promise<[IncomingMessage]>;
  const [received] = await Promise.race([response, closed]);
  if (received.statusCode === 101) throw switched;
  return received;
}

function lengthOf(headers: readonly string[]): number {
  return headers.reduce((sum, text) => sum + text.length + 2, 0);
}
