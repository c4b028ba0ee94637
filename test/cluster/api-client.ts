import type { OutgoingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';

/** Objects of the API as they come: what a test expects of them it asserts. */
export type ApiObject = { [field: string]: unknown };

export interface ApiAnswer {
  /** The HTTP status. */
  readonly status: number;
  readonly body: ApiObject;
}

/** Whom an administrator acts as. */
export interface Caller {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
}

interface Call {
  /** Text is sent as it is. */
  readonly body?: object | string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly as?: Caller;
  /** A bearer token instead of impersonation; the client's certificate is not shown then. */
  readonly token?: string;
}

export interface ApiClient extends Disposable {
  call(method: string, path: string, call?: Call): Promise<ApiAnswer>;
}

/** A client certificate or a bearer token; `ca` is the server's authority. All PEM but the token. */
type Credentials = { ca: string; cert: string; key: string } | { ca: string; token: string };

/** Speaks JSON to an API server. Any HTTP status is an answer; no answer is an error. */
export function apiClient(url: string, credentials: Credentials): ApiClient {
  const agent = new Agent({ ...credentials, keepAlive: true, maxSockets: 4 });
  const bare = new Agent({ ca: credentials.ca, keepAlive: true, maxSockets: 4 });
  const own = 'token' in credentials ? { token: credentials.token } : {};
  return {
    call: (method, path, call = {}) =>
      send(call.token === undefined ? agent : bare, new URL(path, url), method, { ...own, ...call }),
    [Symbol.dispose]: () => {
      agent.destroy();
      bare.destroy();
    },
  };
}

function headersOf({ accept, contentType, as, token }: Call): OutgoingHttpHeaders {
  return {
    accept: accept ?? 'application/json',
    'content-type': contentType ?? 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(as === undefined ? {} : { 'impersonate-user': as.user, 'impersonate-group': [...(as.groups ?? [])] }),
    ...(as?.uid === undefined ? {} : { 'impersonate-uid': as.uid }),
  };
}

function send(agent: Agent, url: URL, method: string, call: Call): Promise<ApiAnswer> {
  const { body } = call;
  return new Promise((resolve, reject) => {
    const headers = headersOf(call);
    const request = httpsRequest(url, { agent, method, headers, timeout: 30_000 }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, body: bodyOf(text) });
      });
    });
    request.on('timeout', () => request.destroy(new Error(`${method} ${url.pathname}: no answer within 30 s`)));
    request.on('error', reject);
    request.end(typeof body === 'object' ? JSON.stringify(body) : body);
  });
}

/** The health endpoints answer in plain text. */
function bodyOf(text: string): ApiObject {
  return text.startsWith('{') ? (JSON.parse(text) as ApiObject) : { text };
}
