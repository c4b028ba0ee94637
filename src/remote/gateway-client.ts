/** The pod's one way out: JSON over HTTPS to the gateway, verified before the token is sent. */
import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../lib/json.ts';
import { type Op, remainingMilliseconds } from '../lib/operation.ts';
import type { Door, DoorFiles } from './door-files.ts';
import { currentTraceparent, TRACEPARENT } from '../telemetry/traceparent.ts';
import { connectionFailure, refusalOf, waitBefore } from './failures.ts';
import { type LineLimits, readLines, tooLarge } from './line-reader.ts';

export interface GatewayCall {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  query?: Record<string, string>;
  body?: object;
  op: Op;
  /** Milliseconds until the answer must have begun; 30 s when absent. */
  patience?: number;
}

export interface GatewayClientOptions {
  doors: DoorFiles;
  clock: Clock;
  /** From 0 to 1; spreads pods that try again. */
  random: () => number;
}

const PATIENCE = 30_000;
const CONNECT_MILLISECONDS = 5_000;
/** A stream that says nothing for so long, not even an empty line, is broken. */
const IDLE_MILLISECONDS = 60_000;
const ANSWER_BYTES = 33_554_432;
const REFUSAL_BYTES = 65_536;
const STREAM_LIMITS: LineLimits = { lineBytes: 4_194_304, totalBytes: 67_108_864 };
const CONNECTIONS = 8;

type Answer = Dispatcher.ResponseData;

interface Session {
  door: Door;
  agent: Agent;
}

/**
 * Failures of the connection, and answers that say so, are tried again until the operation's deadline, always under the same
 * idempotency key. The files of the doors are read again as they change, so neither a new token nor a new authority needs a restart.
 * Throws TEMPER_GATEWAY_* or the code the gateway gave, with its status in `details.status`; TEMPER_CANCELLED when withdrawn.
 */
export class GatewayClient implements AsyncDisposable {
  readonly #options: GatewayClientOptions;
  readonly #leaving = new Set<Promise<void>>();
  #session: Session | undefined;
  #closed = false;

  constructor(options: GatewayClientOptions) {
    this.#options = options;
  }

  /** The answer as JSON; undefined for one without content. */
  async call(call: GatewayCall): Promise<Json | undefined> {
    const text = await this.#send(call, ({ body }) => textOf(body, ANSWER_BYTES, call.op));
    return text === '' ? undefined : parsed(text);
  }

  /** The lines of the answer as they come. */
  async *lines(call: GatewayCall): AsyncGenerator<Json> {
    const body = await this.#send(call, async (answer) => answer.body);
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
    const session = this.#session;
    this.#session = undefined;
    await session?.agent.destroy();
    await Promise.all(this.#leaving);
  }

  /** What `take` makes of the answer, once there is one. */
  async #send<T>(call: GatewayCall, take: (answer: Answer) => Promise<T>): Promise<T> {
    const { clock, random } = this.#options;
    let renewed = false;
    for (let attempt = 0; ; attempt += 1) {
      const result = await this.#attempt(call, attempt > 0, take);
      if (!isTemperError(result)) return result.taken;
      if (!renewed && result.details['status'] === 401 && (await this.#hasNewToken())) {
        renewed = true;
        continue;
      }
      const wait = waitBefore(result, attempt, random());
      if (wait === undefined || wait >= remainingMilliseconds(call.op, clock) || this.#closed) throw result;
      await clock.sleep(wait, call.op.signal).catch(() => undefined);
      if (call.op.signal.aborted) throw withdrawn();
    }
  }

  /** What came of one request, or why nothing did. */
  async #attempt<T>(
    call: GatewayCall,
    reread: boolean,
    take: (answer: Answer) => Promise<T>,
  ): Promise<{ taken: T } | TemperError> {
    if (call.op.signal.aborted) return withdrawn();
    try {
      const { agent, door } = await this.#connect(reread);
      const answer = await agent.request(this.#request(call, door));
      if (answer.statusCode < 300) return { taken: await take(answer) };
      const text = await textOf(answer.body, REFUSAL_BYTES, call.op);
      const retryAfter = answer.headers['retry-after'];
      return refusalOf(answer.statusCode, json(text), typeof retryAfter === 'string' ? retryAfter : undefined);
    } catch (error) {
      return isTemperError(error) ? error : failureOf(error, call.op);
    }
  }

  #request(call: GatewayCall, door: Door): Dispatcher.RequestOptions {
    const { method, path, query, body, op } = call;
    const traceparent = currentTraceparent();
    const patience = Math.min(call.patience ?? PATIENCE, remainingMilliseconds(op, this.#options.clock));
    return {
      origin: door.origin,
      path: query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`,
      method,
      signal: op.signal,
      headersTimeout: Math.max(1, Math.ceil(patience)),
      bodyTimeout: IDLE_MILLISECONDS,
      headers: {
        authorization: `Bearer ${door.token}`,
        ...(traceparent === undefined ? {} : { [TRACEPARENT]: traceparent }),
        ...(method === 'GET' ? {} : { 'idempotency-key': op.key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
  }

  /** One agent for as long as address, name and authority stay the same; a new token needs no new connection. */
  async #connect(reread: boolean): Promise<Session> {
    const door = await this.#options.doors.current(reread ? 'reread' : 'recent');
    if (this.#closed) throw withdrawn();
    const known = this.#session;
    if (known !== undefined && sameDoor(known.door, door)) {
      known.door = door;
      return known;
    }
    if (known !== undefined) this.#leave(known.agent);
    this.#session = { door, agent: agentFor(door) };
    return this.#session;
  }

  async #hasNewToken(): Promise<boolean> {
    const before = this.#session?.door.token;
    return (await this.#options.doors.current('reread')).token !== before;
  }

  /** What is on its way on the old connections may end. */
  #leave(agent: Agent): void {
    const leaving = agent.close().finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }
}

function sameDoor(one: Door, other: Door): boolean {
  return one.origin === other.origin && one.name === other.name && one.authority === other.authority;
}

/** Connects to the address and verifies the name, whatever the address is called. */
function agentFor({ name, authority }: Door): Agent {
  const connect = buildConnector({ ca: authority, timeout: CONNECT_MILLISECONDS, allowH2: false });
  return new Agent({
    connections: CONNECTIONS,
    connect: (options, callback) => connect({ ...options, servername: name }, callback),
  });
}

async function textOf(body: Answer['body'], limit: number, op: Op): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) throw tooLarge(`more than ${limit} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    body.destroy();
    throw isTemperError(error) ? error : failureOf(error, op);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): Json {
  const value = json(text);
  if (value === undefined) throw new TemperError('TEMPER_GATEWAY_ANSWER', 'the gateway sent what is not JSON');
  return value;
}

/** RangeError too: text nested so deeply that reading it fails. */
function json(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}

function failureOf(error: unknown, op: Op): TemperError {
  return op.signal.aborted ? withdrawn() : connectionFailure(error);
}

function withdrawn(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'the call to the gateway was withdrawn');
}
