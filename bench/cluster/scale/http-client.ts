import { type Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';

export interface HttpCall {
  readonly agent: Agent;
  readonly port: number;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** One request to a gateway on this machine. Rejects when the connection fails or the response takes longer than `timeoutMs`. */
export function callGateway({ body, timeoutMs, signal, ...call }: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const options = { host: '127.0.0.1', ...call, headers: { ...call.headers, ...json } };
    const sent = request({ ...options, ...(signal === undefined ? {} : { signal }) }, (response) => {
      const { statusCode: status = 0 } = response;
      text(response).then(
        (received) => resolve({ status, body: received === '' ? {} : (JSON.parse(received) as HttpAnswer['body']) }),
        reject,
      );
    });
    sent.setTimeout(timeoutMs, () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
    sent.once('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
