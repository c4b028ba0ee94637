import type { Socket } from 'node:net';
import type { Server } from 'node:https';
import { LRUCache } from 'lru-cache';
import { entries } from '../lib/caches/lru-entries.ts';
import { TokenBucket, type TokenBucketOptions } from '../lib/async/token-bucket.ts';
import type { Clock } from '../lib/clock.ts';

export interface ConnectionLimitOptions {
  /** Open connections of the server; further ones are closed at once. */
  max?: number;
  /** Open connections with a valid token that no group has. The rest of `max` is for groups, which otherwise find no place. */
  maxWithoutGroup?: number;
  /** Open connections per remote address, without those of groups. */
  perAddress?: number;
  /** The same for an address that groups share; by default as many. */
  perSharedAddress?: number;
  /** Open connections of one group, such as the users of a namespace, which share the addresses of the API server with others. */
  perGroup?: number;
  /** Open connections of all groups per address. A group has no more of them than are still free, so that another one finds a place. */
  groupsPerAddress?: number;
  /** New connections per address that carry no request with a valid token: a TLS handshake costs more than a request. */
  unauthenticated?: TokenBucketOptions;
  /** The same for an address that groups share. */
  unauthenticatedShared?: TokenBucketOptions;
  /** Milliseconds for which an address counts as shared after the last request of a group. */
  sharedAddressTtlMs?: number;
}

export const DEFAULT_MAX_CONNECTIONS = 2_500;
const DEFAULTS: Required<Omit<ConnectionLimitOptions, 'perSharedAddress'>> = {
  max: DEFAULT_MAX_CONNECTIONS,
  maxWithoutGroup: Number.POSITIVE_INFINITY,
  perAddress: 64,
  // More than the long polls and the requests that the users of a namespace may have open.
  perGroup: 400,
  groupsPerAddress: Number.POSITIVE_INFINITY,
  unauthenticated: { perSecond: 10, burst: 128 },
  unauthenticatedShared: { perSecond: 200, burst: 2_000 },
  sharedAddressTtlMs: 600_000,
};
const MAX_SHARED_ADDRESSES = 1_000;
const CACHE_SIZE = 20_000;

/** Why the server closed or refused a connection. */
export type ConnectionRefusal = 'address' | 'unauthenticated' | 'namespace' | 'pods' | 'total' | 'tls' | 'request';

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

/** A connection that counts against its address, or against a group. */
interface Connection {
  address: string;
  /** Undefined: it counts against its address. */
  group?: string;
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
  /** Open connections by address, without those of groups. */
  readonly #ofAddresses = new Counts();
  readonly #ofGroups = new Counts();
  /** Open connections of groups by address. */
  readonly #groupsOfAddresses = new Counts();
  /** Open connections by address and port. */
  readonly #connections = new Map<string, Connection>();
  /** By address, and by `shared/<address>` for an address that groups share. */
  readonly #handshakes = new LRUCache<string, TokenBucket>({
    ...entries(CACHE_SIZE),
    memoMethod: (key) => {
      const { unauthenticated, unauthenticatedShared } = this.#options;
      return new TokenBucket(this.#deps.clock, key.startsWith('shared/') ? unauthenticatedShared : unauthenticated);
    },
  });
  readonly #sharedAddresses: LRUCache<string, true>;
  /** Open connections with a valid token and without a group. */
  #withoutGroup = 0;

  constructor(deps: ConnectionLimitDeps, options: ConnectionLimitOptions = {}) {
    this.#deps = deps;
    const limits = { ...DEFAULTS, ...options };
    this.#options = { ...limits, perSharedAddress: options.perSharedAddress ?? limits.perAddress };
    this.#sharedAddresses = new LRUCache({ ...entries(MAX_SHARED_ADDRESSES), ttl: this.#options.sharedAddressTtlMs });
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

  /**
   * A request with a valid token arrived on the connection, whose start is then no longer counted. False when too many connections have
   * no group; the caller then closes it.
   */
  authenticated(socket: Socket): boolean {
    const connection = this.#connections.get(keyOf(socket));
    if (connection === undefined || connection.authenticated) return true;
    const { address, group } = connection;
    if (group === undefined && this.#withoutGroup >= this.#options.maxWithoutGroup) {
      this.#deps.onRefused('pods', address);
      return false;
    }
    connection.authenticated = true;
    if (group === undefined) this.#withoutGroup += 1;
    this.#handshakesOf(address).giveBack();
    return true;
  }

  /**
   * Counts the connection against a group instead of its address, which then counts as shared. False when the group has as many as it may;
   * the caller then closes it. Only a valid token may lead here.
   */
  countForGroup(socket: Socket, group: string): boolean {
    const connection = this.#connections.get(keyOf(socket));
    // The peer is gone already.
    if (connection === undefined) return true;
    const { address } = connection;
    this.#sharedAddresses.set(address, true);
    if (connection.group !== undefined) return true;
    const { perGroup, groupsPerAddress } = this.#options;
    const free = groupsPerAddress - this.#groupsOfAddresses.of(address);
    if (this.#ofGroups.of(group) >= Math.min(perGroup, free)) {
      this.#deps.onRefused('namespace', address);
      return false;
    }
    this.#count(connection, -1);
    if (connection.authenticated) this.#withoutGroup -= 1;
    connection.group = group;
    this.#count(connection, 1);
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
    const connection = { address, authenticated: false };
    this.#connections.set(key, connection);
    this.#count(connection, 1);
    socket.once('close', () => this.#forget(key));
  }

  #refusalOf(address: string): ConnectionRefusal | undefined {
    const { perAddress, perSharedAddress } = this.#options;
    const max = this.#sharedAddresses.has(address) ? perSharedAddress : perAddress;
    if (this.#ofAddresses.of(address) >= max) return 'address';
    return this.#handshakesOf(address).tryTake() ? undefined : 'unauthenticated';
  }

  #handshakesOf(address: string): TokenBucket {
    return this.#handshakes.memo(this.#sharedAddresses.has(address) ? `shared/${address}` : address);
  }

  #forget(key: string): void {
    const connection = this.#connections.get(key);
    if (connection === undefined) return;
    this.#connections.delete(key);
    if (connection.authenticated && connection.group === undefined) this.#withoutGroup -= 1;
    this.#count(connection, -1);
  }

  #count({ address, group }: Connection, by: number): void {
    if (group === undefined) {
      this.#ofAddresses.add(address, by);
      return;
    }
    this.#ofGroups.add(group, by);
    this.#groupsOfAddresses.add(address, by);
  }
}

/** Numbers by name; without a number it is 0. */
class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, by: number): void {
    const count = this.of(name) + by;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
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
