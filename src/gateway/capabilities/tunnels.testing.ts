/** A proxy that opens every tunnel to one HTTPS server of the test, whatever host it names. */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { platformTrust } from '../../net/proxied-connection.ts';
import { type ProxyConnector, proxyConnector } from '../../net/tunnel.ts';
import type { CallingMessage } from '../brokered/port.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);

export class Tunnels implements AsyncDisposable {
  /** The requests that the proxy got. */
  readonly opened: IncomingMessage[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #servers: Server[] = [];
  #certificate = '';
  #trust: SecureContext | undefined;
  #connect: ProxyConnector | undefined;
  #port = 0;

  static async open(handler: RequestListener): Promise<Tunnels> {
    const tunnels = new Tunnels();
    const [key = '', certificate = ''] = await Promise.all(
      ['key.pem', 'certificate.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
    );
    tunnels.#certificate = certificate;
    const target = await tunnels.#listen(createServer({ key, cert: certificate }, handler));
    const proxy = createServer({ key, cert: certificate });
    proxy.on('connect', (request: IncomingMessage, client: Socket) => tunnels.#tunnel(request, client, target));
    tunnels.#port = await tunnels.#listen(proxy);
    return tunnels;
  }

  /** What a gateway reads of the files about the proxy. */
  readonly files = {
    current: async () => ({
      origin: `https://127.0.0.1:${this.#port}`,
      connect: (this.#connect ??= proxyConnector({ serverName: 'api.example.com', ca: this.#certificate })),
      token: 'gateway-token',
      targetTrust: (this.#trust ??= platformTrust(this.#certificate)),
    }),
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((done) => server.close(done))));
  }

  async #listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => this.#sockets.add(socket));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return (server.address() as AddressInfo).port;
  }

  #tunnel(request: IncomingMessage, client: Socket, port: number): void {
    this.opened.push(request);
    const upstream = connect({ host: '127.0.0.1', port });
    this.#sockets.add(upstream);
    client.on('error', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    client.pipe(upstream).pipe(client);
  }
}

/** A delivery of agent `scout`, as far as tools read it. */
export const DELIVERY = {
  claims: { agentUid: 'a-1', agent: 'scout', namespace: 'team-a', session: 's-1', message: 'm-1', root: 'm-1' },
} as unknown as CallingMessage;
