import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';

/** Answers a request of Node with a handler of the web standard, as the SDK of the Model Context Protocol has them. */
export async function answerWeb(
  message: IncomingMessage,
  response: ServerResponse,
  handle: (request: Request) => Promise<Response>,
): Promise<void> {
  const { method = 'GET', url = '/', headers } = message;
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers)) if (typeof value === 'string') sent.set(name, value);
  const body =
    method === 'POST' ? { body: Readable.toWeb(message) as ReadableStream<Uint8Array>, duplex: 'half' as const } : {};
  const answered = await handle(new Request(`https://api.example.com${url}`, { method, headers: sent, ...body }));
  response.writeHead(answered.status, Object.fromEntries(answered.headers)).flushHeaders();
  if (answered.body !== null) for await (const chunk of answered.body) response.write(chunk);
  response.end();
}
