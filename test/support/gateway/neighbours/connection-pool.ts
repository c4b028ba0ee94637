import { connect as connectTcp, type Socket } from 'node:net';
import { Agent as HttpsAgent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import type { HttpRequestOptions, HttpResponse } from '../gateway-fixture.ts';

/** A status line other than that of an interim response. */
const FINAL_RESPONSE = /HTTP\/1\.1 [2-5]\d\d/;

interface PoolOptions {
  port: number;
  /** The local address of all connections. */
  address: string;
  maxConnections?: number;
}

/** Keeps connections open between calls, as pods and the API server do. All of them come from one address. */
export class ConnectionPool {
  readonly address: string;
  readonly #port: number;
  readonly #agent: HttpsAgent;
  readonly #sockets = new Set<Socket>();

  constructor({ port, address, maxConnections = 32 }: PoolOptions) {
    this.address = address;
    this.#port = port;
    this.#agent = new HttpsAgent({ keepAlive: true, rejectUnauthorized: false, maxSockets: maxConnections });
  }

  /** `body` is sent as JSON; a string or bytes as they are. */
  call(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    const { token, userToken, key, headers: extra = {}, body, signal } = options;
    const bytes =
      body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(userToken === undefined ? {} : { 'temper-token': userToken }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(bytes === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(bytes)) }),
      ...extra,
    };
    const target = { host: '127.0.0.1', port: this.#port, localAddress: this.address, agent: this.#agent };
    return new Promise((resolve, reject) => {
      const sent = request(
        { ...target, path, method, headers, ...(signal === undefined ? {} : { signal }) },
        (response) => {
          text(response).then(
            (received) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received }),
            reject,
          );
        },
      );
      sent.on('error', reject);
      sent.end(bytes);
    });
  }

  /** A TLS connection for raw requests. Rejects when the gateway closes it before it is secure. */
  async open(options: ConnectionOptions = {}): Promise<TLSSocket> {
    const target = { host: '127.0.0.1', port: this.#port, localAddress: this.address };
    const socket = connect({ ...target, rejectUnauthorized: false, ...options });
    this.#keep(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('close', () => reject(new Error('the gateway closed the connection')));
    });
    return socket;
  }

  /** A TCP connection without TLS. */
  async openTcp(): Promise<Socket> {
    const socket = connectTcp({ host: '127.0.0.1', port: this.#port, localAddress: this.address });
    this.#keep(socket);
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    return socket;
  }

  /**
   * Sends the text on a connection of its own and returns what arrives until the final response, or until the gateway closes the
   * connection. Empty when it refuses the connection.
   */
  async exchange(sent: string | Uint8Array, { untilClosed = false } = {}): Promise<string> {
    const socket = await this.open().catch(() => undefined);
    if (socket === undefined) return '';
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (!untilClosed && FINAL_RESPONSE.test(received)) socket.destroy();
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(sent);
    await closed;
    return received;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The gateway may reset a connection at any time. */
  #keep(socket: Socket): void {
    socket.on('error', () => undefined);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
