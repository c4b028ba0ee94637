import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClusterAccess } from '../client/cluster-access.ts';
import type { KubeObject } from './store.ts';

export interface Thing extends KubeObject {
  readonly spec: { readonly value: number };
}

interface LogEntry {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: object;
}

/** The size of every page, independent of the requested limit. */
const PAGE_SIZE = 2;

interface Watcher {
  readonly response: ServerResponse;
  silent: boolean;
}

/** For tests: the fault of the next request. */
export type ApiFault = 'none' | 'refuse' | 'busy' | 'gone' | 'break' | 'forbid' | 'mute';

/**
 * For tests: an API server with one collection, `things` of `example.dev/v1`, that serves lists and watches over real HTTP and fails on demand.
 * Its resourceVersions are opaque: neither their text order nor their numeric order is the order in time.
 */
export class FakeApiServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #objects = new Map<string, object>();
  readonly #watchers = new Set<Watcher>();
  readonly #faults: ApiFault[] = [];
  #log: LogEntry[] = [];
  #version = 0;
  #oldest = 0;
  /** The number of lists and watches requested, without faults. */
  lists = 0;
  watches = 0;
  /** All requests, faults included. */
  readonly requests: { readonly path: string; readonly accept: string }[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeApiServer> {
    const server = createServer();
    const api = new FakeApiServer(server);
    server.on('request', (request, response) => api.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get access(): ClusterAccess {
    const server = new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
    const credentials = () => Promise.resolve({ headers: {}, tls: {} });
    return { server, namespace: undefined, credentials, refresh: () => Promise.resolve() };
  }

  get watching(): number {
    return this.#watchers.size;
  }

  /** The objects by name: the expected content of a synced store. */
  state(): Map<string, object> {
    return new Map(this.#objects);
  }

  set(name: string, value: number): void {
    const known = this.#objects.has(name);
    const uid = known ? uidOf(this.#objects.get(name)) : `uid-${name}-${this.#version + 1}`;
    this.#append(known ? 'MODIFIED' : 'ADDED', name, uid, value);
  }

  remove(name: string): void {
    const object = this.#objects.get(name);
    if (object === undefined) return;
    this.#append('DELETED', name, uidOf(object), -1);
    this.#objects.delete(name);
  }

  /** Discards the watch history up to now, as a compaction of etcd does. */
  compact(): void {
    this.#oldest = this.#version;
    this.#log = [];
  }

  fail(...faults: ApiFault[]): void {
    this.#faults.push(...faults);
  }

  /** Drops pending faults, and closes silent watches. */
  clearFaults(): void {
    this.#faults.length = 0;
    for (const { silent, response } of this.#watchers) if (silent) response.socket?.destroy();
  }

  /** Ends every watch, as a server does after its timeout. */
  endWatches(): void {
    for (const { response } of this.#takeWatchers()) response.end();
  }

  /** Breaks the connection of every watch. */
  dropWatches(): void {
    for (const { response } of this.#takeWatchers()) response.socket?.destroy();
  }

  /** Ends every watch in the middle of a line. */
  truncateWatches(): void {
    for (const { response } of this.#takeWatchers()) response.end('{"type":"MODIFIED","obj');
  }

  /** Sends the last watch event again. */
  repeat(): void {
    const last = this.#log.at(-1);
    if (last !== undefined) this.#broadcast(lineOf(last));
  }

  bookmark(): void {
    this.#broadcast(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${versionOf(this.#version)}"}}}\n`);
  }

  /** Makes all open watches silent: they stay open, and receive no further events. */
  silence(): void {
    for (const watcher of this.#watchers) watcher.silent = true;
  }

  expireWatches(): void {
    this.#broadcast(`{"type":"ERROR","object":${statusOf(410, 'Expired')}}\n`);
    this.endWatches();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  #takeWatchers(): Watcher[] {
    const all = [...this.#watchers];
    this.#watchers.clear();
    return all;
  }

  #append(type: LogEntry['type'], name: string, uid: string, value: number): void {
    this.#version += 1;
    const metadata = { name, namespace: 'team', uid, resourceVersion: versionOf(this.#version) };
    const object = { apiVersion: 'example.dev/v1', kind: 'Thing', metadata, spec: { value } };
    this.#objects.set(name, object);
    const entry = { version: this.#version, type, object };
    this.#log.push(entry);
    this.#broadcast(lineOf(entry));
  }

  /** Writes every line in two chunks, since a line is not a chunk. */
  #broadcast(line: string): void {
    for (const { response, silent } of this.#watchers) {
      if (silent) continue;
      response.write(line.slice(0, 20));
      response.write(line.slice(20));
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://fake');
    this.requests.push({ path: request.url ?? '', accept: request.headers.accept ?? '' });
    const fault = this.#faults.shift();
    if (fault !== undefined && this.#failWith(fault, response)) return;
    if (url.searchParams.get('watch') === 'true') this.#watch(url.searchParams, response, fault === 'mute');
    else this.#list(url.searchParams, response);
  }

  #failWith(fault: ApiFault, response: ServerResponse): boolean {
    switch (fault) {
      case 'refuse':
        response.socket?.destroy();
        return true;
      case 'busy':
        sendError(response, 503, 'ServiceUnavailable');
        return true;
      case 'gone':
        sendError(response, 410, 'Expired');
        return true;
      case 'forbid':
        sendError(response, 403, 'Forbidden');
        return true;
      case 'break':
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"kind":"ThingList","items":[', () => response.socket?.destroy());
        return true;
      case 'none':
      case 'mute':
        return false;
    }
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get('continue')?.split('/')[0] ?? 0);
    if (from === 0) this.lists += 1;
    const listVersion = Number(query.get('continue')?.split('/')[1] ?? this.#version);
    if (listVersion !== this.#version) {
      // A page of an old version: this server stores only the current one.
      sendError(response, 410, 'Expired');
      return;
    }
    const all = [...this.#objects.values()];
    const size = query.has('limit') ? PAGE_SIZE : all.length;
    const items = all.slice(from, from + size);
    const more = from + size < all.length ? `${from + size}/${this.#version}` : undefined;
    const metadata = { resourceVersion: versionOf(this.#version), continue: more };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ kind: 'ThingList', metadata, items }));
  }

  #watch(query: URLSearchParams, response: ServerResponse, silent: boolean): void {
    this.watches += 1;
    const since = numberOf(query.get('resourceVersion') ?? '');
    if (since < this.#oldest) {
      sendError(response, 410, 'Expired');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const watcher = { response, silent };
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
    if (silent) return;
    for (const entry of this.#log) if (entry.version > since) response.write(lineOf(entry));
  }
}

function uidOf(object: object | undefined): string {
  return (object as Thing).metadata.uid ?? '';
}

function lineOf({ type, object }: LogEntry): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function statusOf(code: number, reason: string): string {
  return JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message: `the test requested ${reason}` });
}

function sendError(response: ServerResponse, code: number, reason: string): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(statusOf(code, reason));
}

/** Scrambles the number, so that neither text order nor numeric order is the order in time. */
function versionOf(number: number): string {
  return `v${(number * SCRAMBLE) % VERSIONS}`;
}

function numberOf(version: string): number {
  return (Number(version.slice(1)) * UNSCRAMBLE) % VERSIONS;
}

/** A prime modulus, a factor, and the inverse of the factor. */
const VERSIONS = 1_000_003;
const SCRAMBLE = 7;
const UNSCRAMBLE = 714_288;
