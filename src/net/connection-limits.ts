import type { Socket } from 'node:net';
import type { Server } from 'node:https';
import { LRUCache } from 'lru-cache';
import { TokenBucket, type TokenBucketOptions } from '../lib/async/token-bucket.ts';
import type { Clock } from '../lib/clock.ts';

export interface ConnectionLimitOptions {
  /** Open connections of the server; further ones are closed at once. */
  max?: number;
  /** Open connections per remote address, without those of users: many users share the addresses of the API server. */
  perAddress?: number;
  /** Open connections of the users of one namespace. */
  perUsersNamespace?: number;
  /** New connections per address that carry no request with a valid token: a TLS handshake costs more than a request. */
  unauthenticated?: TokenBucketOptions;
  /** The same for an address that users have. */
  unauthenticatedUsers?: TokenBucketOptions;
}

export const DEFAULT_MAX_CONNECTIONS = 2_500;
const DEFAULTS: Required<ConnectionLimitOptions> = {
  max: DEFAULT_MAX_CONNECTIONS,
  perAddress: 64,
  // More than the long polls and the requests that they may have open.
  perUsersNamespace: 400,
  unauthenticated: { perSecond: 10, burst: 128 },
  unauthenticatedUsers: { perSecond: 200, burst: 2_000 },
};
/** An address is one of users this long after the last request of a user. */
const USERS_ADDRESS_TTL_MS = 600_000;
const MAX_USERS_ADDRESSES = 1_000;
const CACHE_SIZE = 20_000;

/** Why the server closed or refused a connection. */
export type ConnectionRefusal = 'address' | 'unauthenticated' | 'namespace' | 'total' | 'tls' | 'request';

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

/** A connection that counts against its address, or against the users of a namespace. */
interface Connection {
  address: string;
  countedBy: string;
  /** Whether a request with a valid token arrived on it. */
  authenticated: boolean;
}

export interface ConnectionLimitDeps {
  clock: Clock;
  /** Called for each connection that the server does not serve. */
  onRefused: (reason: ConnectionRefusal, address: string) => void;
}

/** Limits open and new connections per address, from the first packet on: a TLS connection costs memory before any token arrives. */
export class ConnectionLimits {
  readonly #deps: ConnectionLimitDeps;
  readonly #options: Required<ConnectionLimitOptions>;
  /** Open connections by what they count against. */
  readonly #counts = new Map<string, number>();
  /** Open connections by address and port. */
  readonly #connections = new Map<string, Connection>();
  /** By address, and by `users/<address>` for an address that users have. */
  readonly #handshakes = new LRUCache<string, TokenBucket>({
    max: CACHE_SIZE,
    memoMethod: (key) => {
      const { unauthenticated, unauthenticatedUsers } = this.#options;
      return new TokenBucket(this.#deps.clock, key.startsWith('users/') ? unauthenticatedUsers : unauthenticated);
    },
  });
  readonly #usersAddresses = new LRUCache<string, true>({ max: MAX_USERS_ADDRESSES, ttl: USERS_ADDRESS_TTL_MS });

  constructor(deps: ConnectionLimitDeps, options: ConnectionLimitOptions = {}) {
    this.#deps = deps;
    this.#options = { ...DEFAULTS, ...options };
  }

  watch(server: Server): void {
    const { onRefused } = this.#deps;
    server.maxConnections = this.#options.max;
    server.on('connection', (socket: Socket) => this.#admit(socket));
    server.on('drop', (dropped) => onRefused('total', dropped?.remoteAddress ?? ''));
    // Node emits several errors for one connection. First of the listeners: the others destroy the socket, which then has no address.
    const failed = new WeakSet<object>();
    server.prependListener('clientError', (error, socket) => {
      const reason = reasonOf(error);
      if (reason === undefined || failed.has(socket)) return;
      failed.add(socket);
      onRefused(reason, (socket as Socket).remoteAddress ?? '');
    });
  }

  /** A request with a valid token arrived on the connection, whose start is then no longer counted. */
  authenticated(socket: Socket): void {
    const connection = this.#connections.get(keyOf(socket));
    if (connection === undefined || connection.authenticated) return;
    connection.authenticated = true;
    this.#handshakesOf(connection.address).giveBack();
  }

  /**
   * Counts the connection against a group, such as the users of a namespace, instead of its address. False when the group has as many as
   * it may; the caller then closes it.
   */
  countForGroup(socket: Socket, group: string): boolean {
    const connection = this.#connections.get(keyOf(socket));
    // The peer is gone already.
    if (connection === undefined) return true;
    this.#usersAddresses.set(connection.address, true);
    if (connection.countedBy !== connection.address) return true;
    if ((this.#counts.get(group) ?? 0) >= this.#options.perUsersNamespace) {
      this.#deps.onRefused('namespace', connection.address);
      return false;
    }
    this.#change(connection.countedBy, -1);
    connection.countedBy = group;
    this.#change(group, 1);
    return true;
  }

  #admit(socket: Socket): void {
    const { remoteAddress: address } = socket;
    // The peer is gone already.
    if (address === undefined) return;
    const reason = this.#refusalOf(address);
    if (reason !== undefined) {
      socket.destroy();
      this.#deps.onRefused(reason, address);
      return;
    }
    const key = keyOf(socket);
    this.#connections.set(key, { address, countedBy: address, authenticated: false });
    this.#change(address, 1);
    socket.once('close', () => this.#forget(key));
  }

  #refusalOf(address: string): ConnectionRefusal | undefined {
    if ((this.#counts.get(address) ?? 0) >= this.#options.perAddress) return 'address';
    return this.#handshakesOf(address).tryTake() ? undefined : 'unauthenticated';
  }

  #handshakesOf(address: string): TokenBucket {
    return this.#handshakes.memo(this.#usersAddresses.has(address) ? `users/${address}` : address);
  }

  #forget(key: string): void {
    const connection = this.#connections.get(key);
    if (connection === undefined) return;
    this.#connections.delete(key);
    this.#change(connection.countedBy, -1);
  }

  #change(counter: string, by: number): void {
    const left = (this.#counts.get(counter) ?? 0) + by;
    if (left > 0) this.#counts.set(counter, left);
    else this.#counts.delete(counter);
  }
}

/** Errors of the HTTP parser and of its timeouts begin so; those of a handshake do not. Undefined when the peer closed the connection. */
function reasonOf(error: Error): 'tls' | 'request' | undefined {
  const code = 'code' in error ? String(error.code) : '';
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined;
  return code.startsWith('HPE_') || code.startsWith('ERR_HTTP_') ? 'request' : 'tls';
}

/** The TLS socket of a request has the address and port of its TCP socket. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`;
}
