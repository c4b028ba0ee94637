import { Agent, request as httpsRequest } from 'node:https';

/** Objects of the API as they come: what a test expects of them it asserts. */
export type ApiObject = { [field: string]: unknown };

export interface ApiAnswer {
  /** The HTTP status. */
  readonly status: number;
  readonly body: ApiObject;
}

interface Call {
  readonly body?: object;
  readonly accept?: string;
}

export interface ApiClient extends Disposable {
  call(method: string, path: string, call?: Call): Promise<ApiAnswer>;
}

/** Speaks JSON to an API server as the holder of a client certificate. Any HTTP status is an answer; no answer is an error. */
export function apiClient(url: string, identity: { ca: string; cert: string; key: string }): ApiClient {
  const agent = new Agent({ ...identity, keepAlive: true, maxSockets: 4 });
  return {
    call: (method, path, call = {}) => send(agent, new URL(path, url), method, call),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

function send(agent: Agent, url: URL, method: string, { body, accept }: Call): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { accept: accept ?? 'application/json', 'content-type': 'application/json' };
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
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The health endpoints answer in plain text. */
function bodyOf(text: string): ApiObject {
  return text.startsWith('{') ? (JSON.parse(text) as ApiObject) : { text };
}
