/**
 * Runs in the process of an agent before its program, as text without types. The process has no network: `fetch` reaches one origin, whose
 * requests go to Temper through the file descriptor 3. Each line of both directions is one JSON object.
 */
import { Socket } from 'node:net';

type Frame = {
  id: number;
  status?: number;
  headers?: [string, string][];
  text?: string;
  end?: boolean;
  error?: string;
};

const ORIGIN = 'http://temper.internal';
const channel = new Socket({ fd: 3, readable: true, writable: true });
const open = new Map<number, (frame: Frame) => void>();
let requests = 0;
let rest = '';

channel.setEncoding('utf8');
channel.on('data', (text: unknown) => {
  const lines = (rest + String(text)).split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) {
    const frame = JSON.parse(line) as Frame;
    open.get(frame.id)?.(frame);
  }
});
channel.on('error', () => undefined);
// The program ends when its standard input does.
channel.unref();

function send(frame: object): void {
  channel.write(`${JSON.stringify(frame)}\n`);
}

async function temperFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const url = new URL(request.url);
  if (url.origin !== ORIGIN) throw new TypeError(`fetch failed: this process reaches ${ORIGIN} only, not ${url.host}`);
  const body = await request.text();
  const { signal } = request;
  signal.throwIfAborted();
  const id = (requests += 1);
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const encoder = new TextEncoder();
  let parts: ReadableStreamDefaultController<Uint8Array> | undefined;
  const abandon = (reason: unknown, isReported: boolean): void => {
    if (!open.delete(id)) return;
    signal.removeEventListener('abort', onAbort);
    if (!isReported) send({ id, abort: true });
    reject(reason);
    parts?.error(reason);
  };
  const onAbort = (): void => abandon(signal.reason, false);
  signal.addEventListener('abort', onAbort);
  open.set(id, (frame) => {
    if (frame.error !== undefined) return abandon(new TypeError(`fetch failed: ${frame.error}`), true);
    if (frame.status !== undefined) {
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          parts = controller;
        },
        cancel: () => abandon(new TypeError('the response was cancelled'), false),
      });
      const isEmpty = [204, 205, 304].includes(frame.status);
      resolve(new Response(isEmpty ? null : stream, { status: frame.status, headers: frame.headers ?? [] }));
    }
    if (frame.text !== undefined) parts?.enqueue(encoder.encode(frame.text));
    if (frame.end === true && open.delete(id)) {
      signal.removeEventListener('abort', onAbort);
      parts?.close();
    }
  });
  const path = `${url.pathname}${url.search}`;
  send({ id, method: request.method, path, headers: [...request.headers], body });
  return promise;
}

globalThis.fetch = temperFetch as typeof fetch;
