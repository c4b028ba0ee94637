import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { Type } from 'typebox';
import type { Authenticator } from '../../identity/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer, RouteModule } from './routes.ts';
import { createGatewayServer, type GatewayServerOptions } from './server.ts';

const PATIENT_MS = 300_000;
const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);

/** A token `good-NAME` belongs to the agent NAME, in the namespace before a dot of the name, else in `team-a`. `slow` waits for each token. */
const testIdentity = (slow: () => Promise<void> | undefined): Authenticator => ({
  pod: async (token) => {
    await slow();
    return podOf(token);
  },
  podOrWarm: async (token) => podOf(token),
  boundIdentity: () => undefined,
  isVerified: (token) => token === 'good-verified',
  isStillBound: () => true,
  verifier: async () => {
    throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
  },
  egress: async () => {
    throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
  },
  egressClient: async () => {
    throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
  },
  user: async (token) => ({ kind: 'user', namespace: token, tokenId: 't-1' }),
  peer: async (token) => ({ kind: 'peer', namespace: token, account: 'planner' }),
});

function podOf(token: string) {
  const [, name = ''] = /^good-(.+)$/.exec(token) ?? [];
  if (name === '') throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
  const [namespace = ''] = name.includes('.') ? name.split('.') : ['team-a'];
  return {
    kind: 'pod',
    namespace,
    podName: name,
    podUid: `pod-${name}`,
    agent: name,
    agentUid: `uid-${name}`,
  } as const;
}

/** A gateway server with small routes, for tests that write to its sockets. */
export class TestServer implements AsyncDisposable {
  readonly server: GatewayServer;
  readonly port: number;
  /** Calls of `/held` that have started, and those whose client is gone. */
  readonly held = { started: 0, disconnected: 0 };
  /** The lines of the log. */
  readonly lines: string[];
  /** The page of metrics. */
  readonly page: () => Promise<string>;
  readonly release = Promise.withResolvers<void>();
  /** Set: the tokens of pods are checked when it resolves. */
  checked: Promise<void> | undefined;
  /** Requests whose token a check began for. */
  received = 0;
  readonly #sockets: TLSSocket[] = [];

  private constructor(server: GatewayServer, { lines, page }: Pick<TestServer, 'lines' | 'page'>) {
    this.server = server;
    this.port = (server.server.address() as AddressInfo).port;
    this.lines = lines;
    this.page = page;
  }

  static async start(options: Partial<GatewayServerOptions> = {}): Promise<TestServer> {
    const [cert = '', key = ''] = await Promise.all(
      ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
    );
    const late: { test?: TestServer } = {};
    const lines: string[] = [];
    const registry = createRegistry();
    const destination = { write: (line: string) => lines.push(line) };
    const deps = {
      clock: systemClock,
      ids: ulids,
      log: createLogger({ level: 'info', destination, secrets: createSecretRedactor() }),
      metrics: registerMetrics(registry, GATEWAY_METRICS),
      identity: testIdentity(() => {
        if (late.test !== undefined) late.test.received += 1;
        return late.test?.checked;
      }),
      draining: new AbortController().signal,
      audit: { append: async () => 0 },
    } as unknown as GatewayDeps;
    const routes: RouteModule = (adding) => addRoutes(adding, () => late.test);
    // A busy machine delays the event loop and handshakes too.
    const timeouts = { handshakeTimeout: PATIENT_MS, headersTimeout: PATIENT_MS, requestTimeout: PATIENT_MS };
    const own = { tls: { cert, key }, maxEventLoopDelayMs: 0, timeouts };
    const server = await createGatewayServer(deps, { ...own, ...options, routes: [routes] });
    await server.listen({ host: '127.0.0.1', port: 0 });
    late.test = new TestServer(server, { lines, page: () => registry.metrics() });
    return late.test;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release.resolve();
    for (const socket of this.#sockets) socket.destroy();
    this.server.server.closeAllConnections();
    await this.server.close();
  }

  /** A TLS connection that is ready to send. */
  async open(ALPNProtocols: string[] = ['http/1.1']): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port: this.port, rejectUnauthorized: false, ALPNProtocols });
    // The server may reset a connection in the midst of a write; tests look at what arrived before.
    socket.on('error', () => undefined);
    this.#sockets.push(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('close', () => reject(new Error('the server closed the connection')));
    });
    return socket;
  }

  /** Open connections, as the server sees them. */
  connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
    });
  }

  /** Sends the text on a connection of its own, and returns all that arrives until the server closes it. */
  async exchange(sent: string): Promise<string> {
    const socket = await this.open();
    socket.write(sent);
    return text(socket).catch(() => '');
  }

  /** The status of one request. The body may be text of any form. */
  async status(path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<number> {
    const lines = Object.entries({
      host: 'gateway',
      connection: 'close',
      ...(body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const method = body === undefined ? 'GET' : 'POST';
    return statusOf(await this.exchange(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`));
  }
}

/** The status of the first response in the text; 0 when there is none. */
export function statusOf(received: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0);
}

function addRoutes(server: GatewayServer, test: () => TestServer | undefined): void {
  const pod = { access: 'pod' } as const;
  server.post('/echo', { config: pod }, async ({ body }) => ({ bytes: JSON.stringify(body ?? null).length }));
  const Names = Type.Object(
    { names: Type.Array(Type.String(), { maxItems: 10 }), text: Type.Optional(Type.String()) },
    { additionalProperties: false },
  );
  server.post('/names', { config: pod, schema: { body: Names } }, async () => ({}));
  server.post('/few', { config: { ...pod, maxValues: 5 } }, async () => ({}));
  server.get('/held', { config: { ...pod, longPoll: true } }, async (request) => {
    const { held, release } = test() ?? { held: { started: 0, disconnected: 0 }, release: Promise.withResolvers() };
    held.started += 1;
    request.disconnected.addEventListener('abort', () => (held.disconnected += 1));
    await release.promise;
    request.disconnected.throwIfAborted();
    return {};
  });
  server.get('/large', { config: { ...pod, largeResponse: true } }, async () => 'x'.repeat(8_388_608));
  server.get('/quick', { config: pod }, async () => ({}));
  server.get('/users/:namespace', { config: { access: 'user' } }, async () => ({}));
  server.post('/users/:namespace', { config: { access: 'user' } }, async () => ({}));
}
