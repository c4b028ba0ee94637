import type { Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { readAnswer, readRefusal } from './answer.ts';
import { ApiError } from './client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { Connections, type Purpose } from './connections.ts';
import type { Metrics } from './metrics.ts';

export interface KubeRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with its query, e.g. `/api/v1/pods?limit=500`. */
  path: string;
  body?: object;
  /** Of the body; `application/json` when not given. */
  contentType?: string;
  accept?: string;
  /** Asked right before each attempt, since a busy server may make the call wait long; what it throws ends the call unsent. */
  before?: () => void;
}

/** HTTP to one API server over one pool of connections. */
export interface Transport extends AsyncDisposable {
  /** The JSON of a success. Throws ApiError for any other status, `TEMPER_KUBE_UNREACHABLE` or `TEMPER_TIMEOUT` when none came. */
  send(request: KubeRequest, signal: AbortSignal): Promise<Json>;
  /** The body of a success as it arrives, without any time limit. Throws as `send` does until the body begins. */
  open(request: KubeRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** The next stream opens a new connection; called when one fell silent. */
  abandonStreams(): void;
}

export interface TransportOptions {
  access: ClusterAccess;
  clock: Clock;
  metrics: Metrics;
  /** Milliseconds for one attempt, and for a stream to begin; 30,000 when not given. */
  timeout?: number;
}

const TIMEOUT = 30_000;
/** Times a call is sent again because the server asked for it. */
const RETRIES = 3;
/** A server that wants a longer pause than this gets it from the caller, who knows what can wait. In seconds. */
const LONGEST_PAUSE = 30;
const UNAUTHORIZED = 401;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;

export function createTransport(options: TransportOptions): Transport {
  const connections = new Connections();
  const caller = new Caller(options, connections);
  return {
    send: (request, signal) =>
      caller.insist(request, signal, 'calls', (answer) => readAnswer(answer.body, nameOf(request))),
    open: (request, signal) => caller.insist(request, signal, 'watches', (answer) => Promise.resolve(answer.body)),
    abandonStreams: () => connections.retire('watches'),
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

type Reader<T> = (answer: Dispatcher.ResponseData) => Promise<T>;

/** For messages: the query may be long and says little. */
function nameOf({ method, path }: KubeRequest): string {
  return `${method} ${path.split('?')[0]}`;
}

class Caller {
  readonly #options: TransportOptions;
  readonly #connections: Connections;

  constructor(options: TransportOptions, connections: Connections) {
    this.#options = options;
    this.#connections = connections;
  }

  /** Sends the request as often as the server asks for and the rules allow. */
  async insist<T>(request: KubeRequest, signal: AbortSignal, purpose: Purpose, read: Reader<T>): Promise<T> {
    let refreshed = false;
    for (let retries = 0; ; ) {
      try {
        return await this.#attempt(request, signal, purpose, read);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === UNAUTHORIZED && !refreshed) {
          refreshed = true;
          await this.#options.access.refresh();
          continue;
        }
        const pause = pauseBefore(request, error);
        if (pause === undefined || retries >= RETRIES) throw error;
        retries += 1;
        await this.#options.clock.sleep(pause, signal);
      }
    }
  }

  async #attempt<T>(request: KubeRequest, signal: AbortSignal, purpose: Purpose, read: Reader<T>): Promise<T> {
    signal.throwIfAborted();
    const { timeout = TIMEOUT } = this.#options;
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), timeout);
    const what = nameOf(request);
    try {
      const answer = await this.#dispatch(request, AbortSignal.any([signal, over.signal]), purpose);
      if (answer.statusCode >= 200 && answer.statusCode < 300) return await read(answer);
      const retryAfter = answer.headers['retry-after'];
      throw await readRefusal(
        answer.statusCode,
        typeof retryAfter === 'string' ? retryAfter : undefined,
        answer.body,
        what,
      );
    } catch (error) {
      if (error instanceof ApiError || error instanceof TemperError) throw error;
      if (signal.aborted) throw signal.reason;
      if (over.signal.aborted) {
        this.#connections.retire(purpose);
        throw new TemperError('TEMPER_TIMEOUT', `${what}: no answer within ${timeout} ms`, { retry: 'backoff' });
      }
      const message = `${what}: ${this.#options.access.server.host} cannot be reached: ${messageOf(error, 500)}`;
      throw new TemperError('TEMPER_KUBE_UNREACHABLE', message, { cause: error, retry: 'backoff' });
    } finally {
      clearTimeout(timer);
    }
  }

  async #dispatch(request: KubeRequest, signal: AbortSignal, purpose: Purpose): Promise<Dispatcher.ResponseData> {
    const { access, clock, metrics } = this.#options;
    const { headers, tls } = await access.credentials();
    const { method, path, body, contentType = 'application/json', accept = 'application/json' } = request;
    const host = access.server.host;
    request.before?.();
    const started = clock.monotonic();
    let code = '<error>';
    try {
      const answer = await this.#connections.agent(purpose, tls).request({
        origin: access.server.origin,
        path: access.server.pathname.replace(/\/$/, '') + path,
        method,
        headers: { ...headers, accept, ...(body === undefined ? {} : { 'content-type': contentType }) },
        body: body === undefined ? null : JSON.stringify(body),
        signal,
      });
      code = String(answer.statusCode);
      return answer;
    } finally {
      metrics.count('rest_client_requests_total', { code, method, host });
      const seconds = (clock.monotonic() - started) / 1_000;
      metrics.observe('rest_client_request_duration_seconds', { verb: method, host }, seconds);
    }
  }
}

/**
 * Milliseconds to wait before the request is sent again; undefined when it is not. A write that the server says it failed at may have been
 * done; one that it had no time for was not.
 */
function pauseBefore(request: KubeRequest, error: ApiError): number | undefined {
  const { status, retryAfterSeconds: seconds } = error;
  if (seconds === undefined || seconds > LONGEST_PAUSE) return undefined;
  const again = status === TOO_MANY_REQUESTS || (request.method === 'GET' && status >= SERVER_ERROR);
  return again ? seconds * 1_000 : undefined;
}
