import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';

/** A `fetch` that sends these headers too, to one port, whatever host the address names, and reads answers as they arrive. */
export function fetchAt(port: number, own: Readonly<Record<string, string>>): typeof fetch {
  return async (input, init = {}) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    const headers = { ...Object.fromEntries(new Headers(init.headers ?? {})), ...own };
    const agent = new Agent({ rejectUnauthorized: false });
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const options = {
      host: '127.0.0.1',
      port,
      path: `${pathname}${search}`,
      method: init.method ?? 'GET',
      headers,
      agent,
    };
    const sent = request(options, (response) => {
      const body = Readable.toWeb(response) as unknown as ReadableStream<Uint8Array>;
      const answered = Object.entries(response.headers).flatMap(([name, value]) =>
        typeof value === 'string' ? [[name, value] as [string, string]] : [],
      );
      resolve(new Response(body, { status: response.statusCode ?? 0, headers: answered }));
    });
    sent.on('error', reject);
    sent.on('close', () => agent.destroy());
    sent.end(init.body ?? undefined);
    return promise;
  };
}
