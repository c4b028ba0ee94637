import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { StreamRequests } from '../../net/streams/stream-requests.ts';
import { validateTarget } from '../../net/targets.ts';
import type { Connection } from '../../connections/connection.ts';
import type { CallingMessage } from '../brokered/port.ts';
import { authoritiesOf } from '../../connections/authorities.ts';
import { type Credential, credentialOf, hasEcho } from './credentials.ts';
import type { ReachableHosts } from './egress-hosts.ts';
import type { OAuthTokens } from './oauth-tokens.ts';

/** The server of a Capability, and how a gateway reaches it. */
export interface ServerEndpoint {
  /** The member of `spec.backend` that names it. */
  readonly kind: 'mcp' | 'a2a';
  readonly url: URL;
  readonly connection: Connection | undefined;
  readonly hosts: ReachableHosts;
  /** An MCP server that the platform runs, and headers of its requests for a message. */
  readonly platform?: {
    readonly name: string;
    headersFor(message: CallingMessage): Readonly<Record<string, string>>;
  };
}

type NamedEndpoint = Pick<ServerEndpoint, 'kind'> & { readonly connection: Pick<Connection, 'name'> | undefined };

/** Requests that a server has not answered: the stream of its notifications, the calls of a session, and calls that were cancelled. */
const MAX_UNANSWERED = 12;

/**
 * The requests of one MCP session, or of one call of an A2A agent. Each connection belongs to the message of the call for which it was opened, as the egress proxy has it;
 * later messages of the session get connections of their own.
 */
export class ServerRequests implements AsyncDisposable {
  readonly #endpoint: ServerEndpoint;
  readonly #tokens: OAuthTokens;
  readonly #open = new Set<StreamRequests>();
  /** Those that were sent, by their headers: the server may repeat each of them. */
  readonly #credentials = new Map<string, Credential>();
  #message: CallingMessage;
  #current: StreamRequests | undefined;
  #unanswered = 0;
  readonly #closed = new AbortController();

  constructor(endpoint: ServerEndpoint, message: CallingMessage, tokens: OAuthTokens) {
    this.#endpoint = endpoint;
    this.#tokens = tokens;
    this.#message = message;
  }

  /** The message of the calls that follow. */
  use(message: CallingMessage): void {
    if (message.claims.message !== this.#message.claims.message) this.#retire();
    this.#message = message;
  }

  /** Throws TEMPER_TOOL_OUTPUT_INVALID for an answer with the credential, which nothing may read. */
  assertNoCredential(answer: Json): void {
    const isIn = (text: string): boolean => [...this.#credentials.values()].some((credential) => credential.isIn(text));
    if (!hasEcho(answer, { isIn })) return;
    const message =
      'the server answered with the credential of its connection, so no agent gets the answer; rotate the credential, because the server hands it on';
    throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
  }

  /** The `fetch` of the client. Throws TEMPER_CONNECTION_*, TEMPER_MCP_SERVER_FAILED, TEMPER_FETCH_*, and the errors of egress. */
  async fetch(target: string | URL, init: RequestInit): Promise<Response> {
    const { url, connection } = this.#endpoint;
    if (String(target) !== url.href)
      throw new TemperError('TEMPER_FETCH_DENIED', 'only the URL of the Capability is asked');
    const credential = await this.#credential(init.signal);
    let response = await this.#send(init, credential.headers);
    // A token may end before its time; the server has not read a message that it refused so.
    if (response.status === 401 && credential.discard()) {
      await response.body?.cancel();
      response = await this.#send(init, (await this.#credential(init.signal)).headers);
    }
    const { status } = response;
    if (status !== 401 && (status !== 403 || connection === undefined)) return response;
    await response.body?.cancel();
    throw unauthorized(status, this.#endpoint);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#current = undefined;
    this.#closed.abort(new Error('the session is closed'));
    await Promise.all([...this.#open].map((requests) => requests[Symbol.asyncDispose]()));
  }

  async #credential(signal: AbortSignal | null | undefined): Promise<Credential> {
    const { connection } = this.#endpoint;
    const op = {
      signal: signal ?? this.#closed.signal,
      deadline: Number.POSITIVE_INFINITY,
      key: `${this.#endpoint.kind}/token`,
    };
    const credential = await credentialOf(connection, this.#message, this.#tokens, op);
    this.#credentials.set(JSON.stringify(credential.headers), credential);
    return credential;
  }

  async #send({ method = 'GET', headers, body, signal }: RequestInit, added: Credential['headers']): Promise<Response> {
    if (this.#unanswered >= MAX_UNANSWERED)
      throw failed(this.#endpoint, `the server leaves ${MAX_UNANSWERED} requests unanswered`);
    this.#unanswered += 1;
    const answered = (): void => void (this.#unanswered -= 1);
    try {
      const response = await this.#requests().send({
        method,
        headers: {
          ...Object.fromEntries(new Headers(headers)),
          ...this.#endpoint.platform?.headersFor(this.#message),
          ...added,
        },
        ...(typeof body === 'string' ? { body } : {}),
        signal: signal ?? this.#closed.signal,
      });
      return whenRead(response, answered);
    } catch (error) {
      answered();
      throw error;
    }
  }

  #requests(): StreamRequests {
    const { url, hosts, connection } = this.#endpoint;
    const message = this.#message;
    this.#current ??= new StreamRequests(validateTarget(url.href, hosts.rules), {
      connect: async (target, signal) => {
        const authorities = await authoritiesOf(connection);
        return hosts.connect(message, authorities)(target, signal);
      },
      maxConnections: MAX_UNANSWERED,
    });
    this.#open.add(this.#current);
    return this.#current;
  }

  #retire(): void {
    const retired = this.#current;
    this.#current = undefined;
    if (retired === undefined) return;
    const forget = (): void => void this.#open.delete(retired);
    retired.finish().then(forget, forget);
  }
}

/** The response, and a notice when nothing more comes of it. */
function whenRead(response: Response, done: () => void): Response {
  const { body, status, headers } = response;
  if (body === null) {
    done();
    return response;
  }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  void piped(body, writable, done);
  return new Response(readable, { status, headers });
}

async function piped(
  body: ReadableStream<Uint8Array>,
  writable: WritableStream<Uint8Array>,
  done: () => void,
): Promise<void> {
  try {
    await body.pipeTo(writable);
  } catch {
    // The reader of the response gets the error.
  } finally {
    done();
  }
}

/** The error for 401 and 403. */
export function unauthorized(status: number, endpoint: NamedEndpoint): TemperError {
  const { connection, kind } = endpoint;
  if (connection === undefined)
    return failed(endpoint, `the server answered ${status}; name a connection in spec.backend.${kind}.connection`);
  const message = `connection "${connection.name}": the server answered ${status}; check the credential and its permissions`;
  return new TemperError('TEMPER_CONNECTION_UNAUTHORIZED', message);
}

function failed({ kind }: NamedEndpoint, message: string): TemperError {
  return new TemperError(kind === 'mcp' ? 'TEMPER_MCP_SERVER_FAILED' : 'TEMPER_TOOL_FAILED', message);
}
