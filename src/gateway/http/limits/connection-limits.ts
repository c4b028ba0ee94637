import type { Socket } from 'node:net';
import type { Server } from 'node:https';

export interface ConnectionLimitOptions {
  /** Open connections of the server; further ones are closed at once. */
  max?: number;
  /** Open connections per remote address, without those of users: many users share the addresses of the API server. */
  perAddress?: number;
}

export const DEFAULT_MAX_CONNECTIONS = 4_000;
const DEFAULT_PER_ADDRESS = 64;

/** What the servers of Node need for a connection that sends nothing, too slowly or too much. Milliseconds and bytes. */
export const CONNECTION_TIMEOUTS = {
  /** TLS handshake. */
  handshakeTimeout: 5_000,
  /** From the start of a connection or a request to the end of its headers. */
  headersTimeout: 10_000,
  /** To the end of the body. */
  requestTimeout: 30_000,
  /**
   * Without progress in either direction: a client that does not read its response holds memory. Longer than any request is silent: a
   * review waits four minutes for its judge.
   */
  connectionTimeout: 300_000,
  /** Between two requests. */
  keepAliveTimeout: 75_000,
  /** Node looks for connections beyond their timeouts at this interval; its default is longer than the timeouts. */
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
} as const;

/** Limits open connections per address, from the first packet on: a TLS connection costs memory before any token arrives. */
export class ConnectionLimits {
  readonly #options: Required<ConnectionLimitOptions>;
  /** Counted connections by address. */
  readonly #counts = new Map<string, number>();
  /** Counted connections by address and port, with their address. */
  readonly #counted = new Map<string, string>();

  constructor({ max = DEFAULT_MAX_CONNECTIONS, perAddress = DEFAULT_PER_ADDRESS }: ConnectionLimitOptions = {}) {
    this.#options = { max, perAddress };
  }

  watch(server: Server): void {
    server.maxConnections = this.#options.max;
    server.on('connection', (socket: Socket) => this.#admit(socket));
  }

  /** Stops counting the connection against its address: the caller is a user, who has the limits of its namespace. */
  exempt(socket: Socket): void {
    this.#forget(keyOf(socket));
  }

  #admit(socket: Socket): void {
    const { remoteAddress } = socket;
    // The peer is gone already.
    if (remoteAddress === undefined) return;
    const count = this.#counts.get(remoteAddress) ?? 0;
    if (count >= this.#options.perAddress) {
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    this.#counts.set(remoteAddress, count + 1);
    this.#counted.set(key, remoteAddress);
    socket.once('close', () => this.#forget(key));
  }

  #forget(key: string): void {
    const address = this.#counted.get(key);
    if (address === undefined) return;
    this.#counted.delete(key);
    const left = (this.#counts.get(address) ?? 1) - 1;
    if (left > 0) this.#counts.set(address, left);
    else this.#counts.delete(address);
  }
}

/** The TLS socket of a request has the address and port of its TCP socket. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`;
}
