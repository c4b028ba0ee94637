/** The pod's client of the gateway: JSON over HTTPS. It verifies the server before it sends the token. */
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { readBytes } from '../lib/async/read-body.ts';
import type { Clock } from '../lib/clock.ts';
import { sha256 } from '../lib/canonical.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../lib/json.ts';
import { type CallOptions, remainingMs } from '../lib/call-options.ts';
import type { GatewayEndpoint, GatewayConfigFiles } from './endpoints/gateway-config-files.ts';
import { UNANSWERED_HEADER } from '../gateway-api/brokered/brokered-api.ts';
import { ANSWER_SIGNATURE_HEADER } from '../gateway-api/pod-api.ts';
import { decodeParts, encodeParts, MAX_PARTS_BYTES, PARTS_TYPE } from '../gateway-api/brokered/parts.ts';
import { currentTraceparent, TRACEPARENT } from '../telemetry/traceparent.ts';
import { connectionError, errorFromResponse, retryDelayMs } from './response-errors.ts';
import { type LineLimits, readLines, tooLarge } from './line-reader.ts';

export interface GatewayRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  body?: object;
  /** Bytes after the body. */
  attachment?: Buffer;
  headers?: Readonly<Record<string, string>>;
  op: CallOptions;
  /** Milliseconds until the response headers must arrive; 30 s when absent. */
  timeoutMs?: number;
  /** Receives the signature of the answer, in place of the client's own receiver. */
  onAnswerSignature?: (signature: string) => void;
}

export interface GatewayClientOptions {
  configFiles: GatewayConfigFiles;
  clock: Clock;
  /** From 0 to 1; the jitter of retries. */
  random: () => number;
  /** Receives the signatures of answers that the gateway carried, of requests without a receiver of their own. */
  onAnswerSignature?: (signature: string) => void;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A response body without any data for so long, not even an empty line, counts as broken. */
const IDLE_TIMEOUT_MS = 60_000;
const MAX_RESPONSE_BYTES = 33_554_432;
const MAX_ERROR_BYTES = 65_536;
const STREAM_LIMITS: LineLimits = { lineBytes: 4_194_304, totalBytes: 67_108_864 };
/** Of a pod that works on sixteen messages: each may stream an answer, store items and send reports while a long poll waits. */
const MAX_CONNECTIONS = 56;

type GatewayResponse = Dispatcher.ResponseData;

interface ServerConnection {
  endpoint: GatewayEndpoint;
  agent: Agent;
}

/**
 * Retries connection failures and transient error responses until the operation's deadline, always with the same idempotency key.
 * Rereads the gateway configuration files as they change, so neither a new token nor a new CA needs a restart. Throws TEMPER_GATEWAY_*
 * or the code of the error response, with its status in `details.status`; TEMPER_CANCELLED when the signal aborts.
 */
export class GatewayClient implements AsyncDisposable {
  readonly #options: GatewayClientOptions;
  readonly #closing = new Set<Promise<void>>();
  #connection: ServerConnection | undefined;
  #closed = false;

  constructor(options: GatewayClientOptions) {
    this.#options = options;
  }

  /** The response as JSON; undefined for one without content. */
  async call(call: GatewayRequest): Promise<Json | undefined> {
    const text = await this.#send(call, ({ body }) => textOf(body, MAX_RESPONSE_BYTES, call.op));
    return text === '' ? undefined : parsed(text);
  }

  /** The JSON of the response, and the bytes after it. */
  async parts(call: GatewayRequest): Promise<{ json: Json; bytes: Buffer }> {
    const found = await this.#send(call, async ({ body }) =>
      decodeParts(await bytesOf(body, MAX_PARTS_BYTES, call.op)),
    );
    if (found === undefined)
      throw new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', 'the gateway sent a body without parts');
    return { json: parsed(found.json.toString('utf8')), bytes: found.bytes };
  }

  /** The lines of the response as they arrive, each parsed as JSON. */
  async *lines(call: GatewayRequest): AsyncGenerator<Json> {
    const body = await this.#send(call, async (response) => response.body);
    try {
      for await (const line of readLines(body, STREAM_LIMITS)) yield parsed(line);
    } catch (error) {
      throw isTemperError(error) ? error : failureOf(error, call.op);
    } finally {
      body.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.agent.destroy();
    await Promise.all(this.#closing);
  }

  /** The result of `take` for the first successful response. */
  async #send<T>(call: GatewayRequest, take: (response: GatewayResponse) => Promise<T>): Promise<T> {
    const { clock, random } = this.#options;
    let tokenRenewed = false;
    // A gateway that knows nothing of the request cannot know whether another one has executed it.
    let unanswered = false;
    for (let attempt = 0; ; attempt += 1) {
      const request: GatewayRequest = unanswered ? asUnanswered(call) : call;
      const result: { taken: T } | TemperError = await this.#attempt(request, attempt > 0, take);
      if (!isTemperError(result)) return result.taken;
      unanswered ||= result.details['status'] === undefined;
      if (!tokenRenewed && result.details['status'] === 401 && (await this.#hasNewToken())) {
        tokenRenewed = true;
        continue;
      }
      const wait = retryDelayMs(result, attempt, random());
      if (wait === undefined || wait >= remainingMs(call.op, clock) || this.#closed) throw result;
      await clock.sleep(wait, call.op.signal).catch(() => undefined);
      if (call.op.signal.aborted) throw cancelled();
    }
  }

  /** One attempt: the result, or the error. */
  async #attempt<T>(
    call: GatewayRequest,
    reread: boolean,
    take: (response: GatewayResponse) => Promise<T>,
  ): Promise<{ taken: T } | TemperError> {
    if (call.op.signal.aborted) return cancelled();
    try {
      const { agent, endpoint } = await this.#connect(reread);
      const response = await agent.request(this.#request(call, endpoint));
      const signature = response.headers[ANSWER_SIGNATURE_HEADER];
      if (typeof signature === 'string') (call.onAnswerSignature ?? this.#options.onAnswerSignature)?.(signature);
      if (response.statusCode < 300) return { taken: await take(response) };
      const text = await textOf(response.body, MAX_ERROR_BYTES, call.op);
      const retryAfter = response.headers['retry-after'];
      return errorFromResponse(
        response.statusCode,
        json(text),
        typeof retryAfter === 'string' ? retryAfter : undefined,
      );
    } catch (error) {
      return isTemperError(error) ? error : failureOf(error, call.op);
    }
  }

  #request(call: GatewayRequest, endpoint: GatewayEndpoint): Dispatcher.RequestOptions {
    const { method, path, query, op } = call;
    const traceparent = currentTraceparent();
    const timeoutMs = Math.min(call.timeoutMs ?? DEFAULT_TIMEOUT_MS, remainingMs(op, this.#options.clock));
    return {
      origin: endpoint.origin,
      path: query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`,
      method,
      signal: op.signal,
      headersTimeout: Math.max(1, Math.ceil(timeoutMs)),
      bodyTimeout: IDLE_TIMEOUT_MS,
      headers: {
        ...call.headers,
        authorization: `Bearer ${endpoint.token}`,
        ...(traceparent === undefined ? {} : { [TRACEPARENT]: traceparent }),
        ...(method === 'GET' ? {} : { 'idempotency-key': headerKey(op.key) }),
        ...contentTypeOf(call),
      },
      ...contentOf(call),
    };
  }

  /** Keeps one agent while address, name and CA stay the same; a new token needs no new connection. */
  async #connect(reread: boolean): Promise<ServerConnection> {
    const endpoint = await this.#options.configFiles.current(reread ? 'reread' : 'recent');
    if (this.#closed) throw cancelled();
    const current = this.#connection;
    if (current !== undefined && sameServer(current.endpoint, endpoint)) {
      current.endpoint = endpoint;
      return current;
    }
    if (current !== undefined) this.#closeGracefully(current.agent);
    this.#connection = { endpoint, agent: agentFor(endpoint) };
    return this.#connection;
  }

  async #hasNewToken(): Promise<boolean> {
    const previous = this.#connection?.endpoint.token;
    return (await this.#options.configFiles.current('reread')).token !== previous;
  }

  /** Lets requests in flight on the old connections finish. */
  #closeGracefully(agent: Agent): void {
    const closing = agent.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

function asUnanswered(call: GatewayRequest): GatewayRequest {
  return { ...call, headers: { ...call.headers, [UNANSWERED_HEADER]: 'true' } };
}

/** The gateway accepts 1 to 128 printable characters; keys of the engine may contain ids that a model provider chose. */
function headerKey(key: string): string {
  return /^[\x21-\x7e]{1,128}$/.test(key) ? key : sha256(key);
}

function sameServer(one: GatewayEndpoint, other: GatewayEndpoint): boolean {
  return one.origin === other.origin && one.serverName === other.serverName && one.ca === other.ca;
}

/** Connects to the address and verifies the certificate against `name`, not against the address. */
function agentFor({ serverName, ca }: GatewayEndpoint): Agent {
  const connect = buildConnector({ ca: ca, timeout: CONNECT_TIMEOUT_MS, allowH2: false });
  return new Agent({
    connections: MAX_CONNECTIONS,
    connect: (options, callback) => connect({ ...options, servername: serverName }, callback),
  });
}

function contentTypeOf({ body, attachment }: GatewayRequest): Record<string, string> {
  if (body === undefined) return {};
  return { 'content-type': attachment === undefined ? 'application/json' : PARTS_TYPE };
}

function contentOf({ body, attachment }: GatewayRequest): { body?: string | Buffer } {
  if (body === undefined) return {};
  return { body: attachment === undefined ? JSON.stringify(body) : encodeParts(body, attachment) };
}

async function textOf(body: GatewayResponse['body'], limit: number, op: CallOptions): Promise<string> {
  return (await bytesOf(body, limit, op)).toString('utf8');
}

async function bytesOf(body: GatewayResponse['body'], limit: number, op: CallOptions): Promise<Buffer> {
  try {
    return await readBytes(body, limit, () => tooLarge(`more than ${limit} bytes`));
  } catch (error) {
    body.destroy();
    throw isTemperError(error) ? error : failureOf(error, op);
  }
}

function parsed(text: string): Json {
  const value = json(text);
  if (value === undefined)
    throw new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', 'the gateway sent a body that is not JSON');
  return value;
}

/** Catches RangeError too, which the parser throws for deeply nested text. */
function json(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}

function failureOf(error: unknown, op: CallOptions): TemperError {
  return op.signal.aborted ? cancelled() : connectionError(error);
}

function cancelled(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'the call to the gateway was cancelled');
}
