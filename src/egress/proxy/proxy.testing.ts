/** A proxy with servers behind it, for tests: names resolve to public addresses, whose connections end at servers on loopback. */
import { readFile } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, connect as connectTcp, type Server, type Socket } from 'node:net';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { Network } from '../../net/dialer.ts';
import { createLogger, type Logger, type LogLevel } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type {
  Authorizer,
  ConnectionOwner,
  ConnectionReport,
  ConnectionRequest,
  EndedConnection,
} from '../authorizer.ts';
import { directRoute } from '../route/route.ts';
import { Admission } from './admission.ts';
import { ConnectionReporter } from './connection-reporter.ts';
import { DEFAULT_LIMITS, type OpenConnectionLimits, OpenConnections } from './open-connections.ts';
import { ProxyClient } from './proxy-client.testing.ts';
import { createProxyServer, type ProxyServerOptions } from './server.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);
export const PUBLIC = '93.184.215.14';
const OWNER: ConnectionOwner = {
  caller: 'Pod',
  agent: 'anna',
  agentUid: 'uid-1',
  namespace: 'team-a',
  session: 's-1',
  message: 'm-1',
};

/** Allows the hosts below `example.com`, and what a test sets. */
class TestAuthorizer implements Authorizer {
  readonly requests: ConnectionRequest[] = [];
  readonly reports: ConnectionReport[][] = [];
  ended: (connection: ConnectionReport) => EndedConnection | undefined = () => undefined;
  isAllowed = (host: string): boolean => host.endsWith('.example.com') || host === PUBLIC;
  remainingMs = 60_000;
  owner: (request: ConnectionRequest) => Partial<ConnectionOwner> = () => ({});
  failure: Error | undefined;

  async authorize(request: ConnectionRequest) {
    this.requests.push(request);
    if (this.failure !== undefined) throw this.failure;
    if (!this.isAllowed(request.host)) throw new TemperError('TEMPER_POLICY_DENIED', `${request.host} is not granted`);
    const { remainingMs } = this;
    return { ...OWNER, ...this.owner(request), remainingMs };
  }

  async report(connections: readonly ConnectionReport[]): Promise<EndedConnection[]> {
    if (this.failure !== undefined) throw this.failure;
    this.reports.push([...connections]);
    return connections.flatMap((connection) => this.ended(connection) ?? []);
  }

  get reportedBytes(): number {
    return this.reports.flat().reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

export interface TestProxyOptions extends Partial<Pick<ProxyServerOptions, 'connectionLimits' | 'timeouts'>> {
  limits?: Partial<OpenConnectionLimits>;
  isExcluded?: (address: string) => boolean;
}

export class TestProxy extends ProxyClient implements AsyncDisposable {
  readonly authorizer = new TestAuthorizer();
  readonly lines: Record<string, unknown>[] = [];
  /** Names that were resolved, and addresses that were connected to, in order. */
  readonly resolved: string[] = [];
  readonly dialled: string[] = [];
  names: Record<string, readonly string[]> = { 'api.example.com': [PUBLIC], 'other.example.com': ['1.1.1.1'] };
  handler: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end('hello');
  reporter!: ConnectionReporter;
  connections!: OpenConnections;
  readonly #servers: Server[] = [];

  static async start(options: TestProxyOptions = {}): Promise<TestProxy> {
    const test = new TestProxy();
    const [cert = '', key = ''] = await Promise.all(
      ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
    );
    test.certificate = cert;
    const serve = (request: IncomingMessage, response: ServerResponse): void => test.handler(request, response);
    const plain = await test.#listen(createHttp(serve));
    const secure = await test.#listen(createHttps({ cert, key }, serve));
    test.port = await test.#listen(test.#proxy({ cert, key }, { plain, secure }, options));
    return test;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.destroyAll();
    await Promise.all(this.#servers.map((server) => new Promise((done) => server.close(done))));
  }

  #proxy(
    tls: { cert: string; key: string },
    ports: { plain: number; secure: number },
    { limits, isExcluded, ...options }: TestProxyOptions,
  ): Server {
    const destination = { write: (line: string) => this.lines.push(JSON.parse(line) as Record<string, unknown>) };
    const logOf = (level: LogLevel): Logger => createLogger({ level, destination, secrets: createSecretRedactor() });
    const log = logOf('error');
    const { authorizer } = this;
    this.connections = new OpenConnections({
      limits: { ...DEFAULT_LIMITS, ...limits },
      ids: ulids,
      onReportDue: () => this.reporter.due(),
    });
    const { connections } = this;
    this.reporter = new ConnectionReporter({ clock: systemClock, log, authorizer, connections });
    const admission = new Admission({ clock: systemClock, authorizer });
    const network = { ...this.#network(ports), ...(isExcluded === undefined ? {} : { isExcluded }) };
    const route = directRoute(network);
    const common = { clock: systemClock, log, audit: logOf('info'), route, admission, connections };
    const deps = { ...common, metrics: { count: () => undefined } };
    return createProxyServer({ ...options, ...deps, tls });
  }

  #network({ plain, secure }: { plain: number; secure: number }): Network {
    return {
      resolve: async (host) => {
        this.resolved.push(host);
        return this.names[host] ?? [];
      },
      connect: async (address, port) => {
        this.dialled.push(`${address}:${port}`);
        const socket = connectTcp({ host: '127.0.0.1', port: port === 80 ? plain : secure });
        this.sockets.push(socket);
        await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
        return socket;
      },
    };
  }

  async #listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => this.sockets.push(socket));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return (server.address() as AddressInfo).port;
  }
}
