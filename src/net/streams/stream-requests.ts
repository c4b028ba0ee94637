/** HTTP requests to one origin whose responses are streams, over connections that the caller opens. */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type buildConnector, type Dispatcher, Pool } from 'undici';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { reasonOf } from '../fetch.ts';
import type { Target } from '../targets.ts';

export interface StreamedRequest {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Ends the request, and the stream of its response. Without it a server may never end them. */
  signal: AbortSignal;
}

interface StreamRequestsOptions {
  /** Opens a connection to the target. */
  connect: (target: Target, signal: AbortSignal) => Promise<Socket>;
  /** Requests at the same time; others wait. */
  maxConnections: number;
}

/** The headers of a response that a caller gets. */
const RETURNED = ['content-type', 'mcp-session-id'];
const WITHOUT_BODY = [204, 205, 304];

/** Redirects are refused, and bodies have no encoding that could make them larger. Connections are kept for the next request. */
export class StreamRequests implements AsyncDisposable {
  readonly #target: Target;
  readonly #pool: Pool;
  readonly #closed = new AbortController();

  constructor(target: Target, { connect, maxConnections }: StreamRequestsOptions) {
    this.#target = target;
    this.#pool = new Pool(target.url.origin, {
      connect: (_ignored, callback) => void this.#dial(connect, callback),
      connections: maxConnections,
      pipelining: 1,
      // A server answers when its tool has; the signal of the request limits the time.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Throws the error of `connect`, TEMPER_FETCH_DENIED for a redirect, and TEMPER_FETCH_FAILED. */
  async send({ method, headers, body, signal }: StreamedRequest): Promise<Response> {
    const { pathname, search } = this.#target.url;
    try {
      const response = await this.#pool.request({
        path: `${pathname}${search}`,
        method: method as Dispatcher.HttpMethod,
        headers: { ...headers, 'user-agent': 'temper', 'accept-encoding': 'identity' },
        body: body ?? null,
        signal,
      });
      return await this.#read(response);
    } catch (error) {
      if (isTemperError(error)) throw error;
      const reason = signal.aborted ? 'no complete response in time' : reasonOf(error);
      throw new TemperError('TEMPER_FETCH_FAILED', `the request failed: ${reason}`, { cause: error });
    }
  }

  /** Takes no further requests, and closes the connections as their requests end. */
  async finish(): Promise<void> {
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new Error('the requests are closed'));
    await this.#pool.destroy();
  }

  async #dial(connect: StreamRequestsOptions['connect'], callback: buildConnector.Callback): Promise<void> {
    let socket: Socket;
    try {
      socket = await connect(this.#target, this.#closed.signal);
    } catch (error) {
      callback(error instanceof Error ? error : new Error('the connection cannot be opened'), null);
      return;
    }
    callback(null, socket);
  }

  async #read({ statusCode: status, headers, body }: Dispatcher.ResponseData): Promise<Response> {
    // Who reads the body gets the error of a stream that breaks; without a reader, it is of no use.
    body.on('error', () => undefined);
    const problem = problemOf(this.#target, status, headers['content-encoding']);
    if (problem !== undefined) {
      body.destroy();
      throw problem;
    }
    const returned = RETURNED.flatMap((name): [string, string][] => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    });
    if (!WITHOUT_BODY.includes(status))
      return new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, { status, headers: returned });
    await body.dump();
    return new Response(null, { status, headers: returned });
  }
}

function problemOf({ host }: Target, status: number, encoding: string | string[] | undefined): TemperError | undefined {
  if (status >= 300 && status < 400 && status !== 304)
    return new TemperError('TEMPER_FETCH_DENIED', `${host} redirects, which is refused`);
  if (encoding === undefined || encoding === 'identity') return undefined;
  const message = 'the response has a content-encoding that the request did not accept';
  return new TemperError('TEMPER_FETCH_FAILED', message);
}
