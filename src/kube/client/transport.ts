import type { Dispatcher } from 'undici';
import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { readResponse, readError } from './response.ts';
import { ApiError } from './kube-client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { userAgent } from './user-agent.ts';
import { Connections, type ConnectionPurpose } from './connections.ts';
import type { Metrics } from '../metrics.ts';

export interface KubeRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path with its query, e.g. `/api/v1/pods?limit=500`. */
  path: string;
  body?: object;
  /** The content type of the body; default `application/json`. */
  contentType?: string;
  accept?: string;
  /** The maximum size of the response; a larger one throws `TEMPER_KUBE_RESPONSE_TOO_LARGE`. */
  maxResponseBytes?: number;
  /** The connections of a call; default `calls`. */
  connection?: 'calls' | 'lease';
  /** Called immediately before each attempt, since a retry may wait long. When it throws, nothing is sent and the call throws its error. */
  beforeAttempt?: () => void;
}

/** An HTTP client for one API server, with one pool of connections. */
export interface Transport extends AsyncDisposable {
  /**
   * The JSON body of a successful response. Throws ApiError for any other status, `TEMPER_KUBE_UNREACHABLE` or `TEMPER_TIMEOUT` without a usable
   * response, and the reason of the signal when it aborts. Retries as the response's Retry-After asks, up to three times: always after 429, after
   * a 5xx only for GET.
   */
  send(request: KubeRequest, signal: AbortSignal): Promise<Json>;
  /** The body of a successful response as a stream, without a timeout. Throws as `send` does until the body starts. */
  open(request: KubeRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** Makes the next stream open a new connection; called when a stream has stalled. */
  retireStreamConnection(): void;
}

export interface TransportOptions {
  access: ClusterAccess;
  clock: Clock;
  metrics: Metrics;
  /** The timeout of one attempt, and of the start of a stream, in milliseconds; default 30,000. */
  timeoutMs?: number;
  /** The component of this process, e.g. `operator`; part of the `User-Agent`. */
  component?: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** The maximum number of retries that the server requests with Retry-After. */
const MAX_RETRIES = 3;
/** After a longer Retry-After the error is thrown, since the caller knows how long it can wait. */
const MAX_RETRY_AFTER_SECONDS = 30;
const UNAUTHORIZED = 401;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;

export function createTransport(options: TransportOptions): Transport {
  const connections = new Connections();
  const sender = new RequestSender(options, connections);
  return {
    send: (request, signal) =>
      sender.sendWithRetry(request, signal, request.connection ?? 'calls', (response) =>
        readResponse(response.body, nameOf(request), request.maxResponseBytes),
      ),
    open: (request, signal) =>
      sender.sendWithRetry(request, signal, 'watches', (response) => Promise.resolve(response.body)),
    retireStreamConnection: () => connections.retire('watches'),
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

type ResponseReader<T> = (response: Dispatcher.ResponseData) => Promise<T>;

/** Method and path for error messages; without the query, which may be long. */
function nameOf({ method, path }: KubeRequest): string {
  return `${method} ${path.split('?')[0]}`;
}

class RequestSender {
  readonly #options: TransportOptions;
  readonly #connections: Connections;

  constructor(options: TransportOptions, connections: Connections) {
    this.#options = options;
    this.#connections = connections;
  }

  /** Sends the request, with retries that the server requests, and one retry with new credentials after a 401. */
  async sendWithRetry<T>(
    request: KubeRequest,
    signal: AbortSignal,
    purpose: ConnectionPurpose,
    read: ResponseReader<T>,
  ): Promise<T> {
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
        const delay = retryDelay(request, error);
        if (delay === undefined || retries >= MAX_RETRIES) throw error;
        retries += 1;
        await this.#options.clock.sleep(delay, signal);
      }
    }
  }

  async #attempt<T>(
    request: KubeRequest,
    signal: AbortSignal,
    purpose: ConnectionPurpose,
    read: ResponseReader<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = this.#options;
    const timedOut = new AbortController();
    const timer = setTimeout(() => timedOut.abort(), timeoutMs);
    const what = nameOf(request);
    try {
      const response = await this.#dispatch(request, AbortSignal.any([signal, timedOut.signal]), purpose);
      if (response.statusCode >= 200 && response.statusCode < 300) return await read(response);
      const retryAfter = response.headers['retry-after'];
      throw await readError(
        response.statusCode,
        typeof retryAfter === 'string' ? retryAfter : undefined,
        response.body,
        what,
      );
    } catch (error) {
      if (error instanceof ApiError || error instanceof TemperError) throw error;
      if (signal.aborted) {
        // The caller waits no longer: over a dead connection its next call would fail too.
        if (isTimeout(signal.reason)) this.#connections.retire(purpose);
        throw signal.reason;
      }
      if (timedOut.signal.aborted) {
        this.#connections.retire(purpose);
        throw new TemperError('TEMPER_TIMEOUT', `${what}: no response within ${timeoutMs} ms`, { retry: 'backoff' });
      }
      const message = `${what}: ${this.#options.access.server.host} cannot be reached: ${messageOf(error, 500)}`;
      throw new TemperError('TEMPER_KUBE_UNREACHABLE', message, { cause: error, retry: 'backoff' });
    } finally {
      clearTimeout(timer);
    }
  }

  async #dispatch(
    request: KubeRequest,
    signal: AbortSignal,
    purpose: ConnectionPurpose,
  ): Promise<Dispatcher.ResponseData> {
    const { access, clock, metrics, component } = this.#options;
    const { headers, tls } = await access.credentials();
    const { method, path, body, contentType = 'application/json', accept = 'application/json' } = request;
    const host = access.server.host;
    request.beforeAttempt?.();
    const started = clock.monotonic();
    let code = '<error>';
    try {
      const response = await this.#connections.agent(purpose, tls).request({
        origin: access.server.origin,
        path: access.server.pathname.replace(/\/$/, '') + path,
        method,
        headers: {
          ...headers,
          accept,
          'user-agent': userAgent(component),
          ...(body === undefined ? {} : { 'content-type': contentType }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal,
      });
      code = String(response.statusCode);
      return response;
    } finally {
      metrics.count('rest_client_requests_total', { code, method, host });
      const seconds = (clock.monotonic() - started) / 1_000;
      metrics.observe('rest_client_request_duration_seconds', { verb: method, host }, seconds);
    }
  }
}

/** The reason of `AbortSignal.timeout`. */
function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}

/**
 * The delay before a retry, in milliseconds; undefined for no retry. After a 429 the server has not executed the request; after a 5xx it may
 * have executed a write, so only a GET is retried.
 */
function retryDelay(request: KubeRequest, error: ApiError): number | undefined {
  const { status, retryAfterSeconds: seconds } = error;
  if (seconds === undefined || seconds > MAX_RETRY_AFTER_SECONDS) return undefined;
  const isRetryable = status === TOO_MANY_REQUESTS || (request.method === 'GET' && status >= SERVER_ERROR);
  return isRetryable ? seconds * 1_000 : undefined;
}
