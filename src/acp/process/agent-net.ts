/**
 * Runs in the process of an agent after `agent-fetch.ts`, as text without types. HTTP clients that a program brings open connections
 * themselves: those to Temper end at a server in this process, which asks Temper as `fetch` does. Every other connection is refused by the
 * permission model.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { Duplex } from 'node:stream';

const HOST = 'temper.internal';
const askTemper = globalThis.fetch;

/** One end of a connection, with as much of a socket as HTTP clients use. */
class MemorySocket extends Duplex {
  readonly connecting = false;
  readonly remoteAddress = HOST;
  peer: MemorySocket | undefined;
  #written: (() => void) | undefined;

  override _read(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#hand(chunk, done);
  }
  override _final(done: () => void): void {
    this.#hand(null, done);
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this._read();
    process.nextTick(() => this.peer?.destroy());
    done(error);
  }
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setTimeout(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  /** The writer goes on when the other end has read. */
  #hand(chunk: Buffer | null, done: () => void): void {
    const { peer } = this;
    if (peer === undefined || peer.destroyed || peer.push(chunk) || chunk === null) return done();
    peer.#written = done;
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = 'GET', url = '/' } = request;
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const left = new AbortController();
  response.once('close', () => left.abort());
  const headers = Object.entries(request.headersDistinct).map(([name, values]): [string, string] => [
    name,
    (values ?? []).join(', '),
  ]);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const given = await askTemper(new URL(url, `http://${HOST}`), {
    method,
    headers: headers.filter(([name]) => !OF_CONNECTION.includes(name)),
    signal: left.signal,
    ...(hasBody ? { body: Buffer.concat(parts) } : {}),
  });
  response.writeHead(
    given.status,
    [...given.headers].filter(([name]) => !OF_CONNECTION.includes(name)),
  );
  response.flushHeaders();
  for await (const part of given.body ?? []) response.write(part);
  response.end();
}

/** Headers of a connection, which say nothing about the request to Temper. */
const OF_CONNECTION = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'transfer-encoding',
  'upgrade',
];

const server = http.createServer((request, response) => {
  answer(request, response).catch((error: unknown) => response.destroy(error as Error));
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.headersTimeout = 0;

function connection(): MemorySocket {
  const [near, far] = [new MemorySocket(), new MemorySocket()];
  near.peer = far;
  far.peer = near;
  server.emit('connection', far);
  process.nextTick(() => {
    near.emit('connect');
    near.emit('ready');
  });
  return near;
}

const connect = net.connect;
const replaced = (...given: unknown[]): unknown => {
  const [first, second] = given;
  const host: unknown = typeof first === 'object' && first !== null ? Reflect.get(first, 'host') : second;
  if (host !== HOST) return Reflect.apply(connect, net, given);
  const socket = connection();
  const listener = given.at(-1);
  if (typeof listener === 'function') socket.once('connect', listener as () => void);
  return socket;
};
Reflect.set(net, 'connect', replaced);
Reflect.set(net, 'createConnection', replaced);
syncBuiltinESMExports();
