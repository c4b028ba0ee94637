import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';

/** An object of the API, unvalidated: tests assert the fields they need. */
export type ApiObject = { [field: string]: unknown };

export interface ApiResponse {
  /** The HTTP status. */
  readonly status: number;
  readonly body: ApiObject;
  readonly headers: IncomingHttpHeaders;
}

/** The user that an administrator impersonates. */
export interface ApiUser {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
}

interface CallOptions {
  /** An object is sent as JSON, text unchanged. */
  readonly body?: object | string;
  readonly accept?: string;
  readonly contentType?: string;
  /** Beside those of the client, in lower case; the service proxy of the API server forwards them. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly as?: ApiUser;
  /** Authenticates with this bearer token; the client certificate is not sent. */
  readonly token?: string;
}

export interface ApiClient extends Disposable {
  call(method: string, path: string, call?: CallOptions): Promise<ApiResponse>;
}

/** A client certificate or a bearer token; `ca` is the server's CA. All values except the token are PEM. */
type Credentials = { ca: string; cert: string; key: string } | { ca: string; token: string };

/** A JSON client for an API server. Every HTTP status resolves; only a failed connection or a timeout rejects. */
export function apiClient(url: string, credentials: Credentials): ApiClient {
  const agent = new Agent({ ...credentials, keepAlive: true, maxSockets: 4 });
  const tokenAgent = new Agent({ ca: credentials.ca, keepAlive: true, maxSockets: 4 });
  const defaults = 'token' in credentials ? { token: credentials.token } : {};
  return {
    call: (method, path, call = {}) =>
      send(call.token === undefined ? agent : tokenAgent, new URL(path, url), method, { ...defaults, ...call }),
    [Symbol.dispose]: () => {
      agent.destroy();
      tokenAgent.destroy();
    },
  };
}

function headersOf({ accept, contentType, as, token, headers }: CallOptions): OutgoingHttpHeaders {
  return {
    ...headers,
    accept: accept ?? 'application/json',
    'content-type': contentType ?? 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(as === undefined ? {} : { 'impersonate-user': as.user, 'impersonate-group': [...(as.groups ?? [])] }),
    ...(as?.uid === undefined ? {} : { 'impersonate-uid': as.uid }),
  };
}

/** The API server of a busy machine may take long to respond, and no test depends on how long. */
const TIMEOUT_MS = 120_000;

function send(agent: Agent, url: URL, method: string, call: CallOptions): Promise<ApiResponse> {
  const { body } = call;
  return new Promise((resolve, reject) => {
    const headers = headersOf(call);
    const request = httpsRequest(url, { agent, method, headers, timeout: TIMEOUT_MS }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, body: bodyOf(text), headers: response.headers });
      });
    });
    request.on('timeout', () =>
      request.destroy(new Error(`${method} ${url.pathname}: no response within ${TIMEOUT_MS / 1_000} s`)),
    );
    request.on('error', reject);
    request.end(typeof body === 'object' ? JSON.stringify(body) : body);
  });
}

/** The health endpoints respond in plain text. */
function bodyOf(text: string): ApiObject {
  return text.startsWith('{') ? (JSON.parse(text) as ApiObject) : { text };
}
