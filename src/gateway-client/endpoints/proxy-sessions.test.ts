import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { issueTlsIdentity, type TlsIdentity } from '../certificates.testing.ts';
import { openTunnel, type ProxyConnector, proxyConnector } from '../../net/tunnel.ts';

const NAME = 'temper-egress';

/** Whether each connection of the proxy resumed a session, in order. */
class Proxy {
  readonly resumed: boolean[] = [];
  readonly server: Server;
  readonly #sockets: Socket[] = [];

  constructor({ key, certificate }: TlsIdentity) {
    this.server = createServer({ key, cert: certificate, minVersion: 'TLSv1.3' });
    this.server.on('connection', (socket) => this.#sockets.push(socket));
    this.server.on('secureConnection', (socket) => this.resumed.push(socket.isSessionReused()));
    this.server.on('connect', (_request, client) => client.end('HTTP/1.1 200 Connection Established\r\n\r\nhello'));
  }

  async listen(port = 0): Promise<number> {
    this.server.listen(port, '127.0.0.1');
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.server.close(done));
  }
}

describe('connections to the egress proxy', () => {
  let folder: string;
  let own: TlsIdentity;
  let foreign: TlsIdentity;
  let proxies: Proxy[] = [];
  let connect: ProxyConnector;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-tunnel-'));
    [own, foreign] = await Promise.all([
      issueTlsIdentity(folder, 'own', NAME),
      issueTlsIdentity(folder, 'foreign', NAME),
    ]);
  });
  beforeEach(() => {
    connect = proxyConnector({ serverName: NAME, ca: own.authority });
  });
  after(async () => {
    for (const proxy of proxies) await proxy.close();
    await rm(folder, { recursive: true });
  });

  const start = async (identity: TlsIdentity, at?: number): Promise<{ proxy: Proxy; port: number }> => {
    const proxy = new Proxy(identity);
    proxies.push(proxy);
    return { proxy, port: await proxy.listen(at) };
  };
  /** What the target sends. */
  const read = async (port: number): Promise<string> => {
    const proxy = { origin: `https://127.0.0.1:${port}`, connect };
    const opened = await openTunnel({ proxy, authority: 'api.example.com:443', headers: {} }, NEVER_ABORTED);
    if ('refusal' in opened) throw new Error(`status ${opened.refusal.status}`);
    const chunks: Buffer[] = [];
    for await (const chunk of opened.stream as TLSSocket) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  };

  it('a further connection resumes the session of the one before', async () => {
    const { proxy, port } = await start(own);
    for (let time = 0; time < 3; time += 1) assert.equal(await read(port), 'hello');
    assert.deepEqual(proxy.resumed, [false, true, true]);
  });

  it('another replica, which knows nothing of the session, is connected to all the same', async () => {
    const [first, second] = [await start(own), await start(own)];
    for (const { port } of [first, second, first, second]) assert.equal(await read(port), 'hello');
    assert.deepEqual(first.proxy.resumed, [false, false]);
    assert.deepEqual(second.proxy.resumed, [false, false]);
  });

  it('a server of another authority at the same address is refused, whatever session it is offered', async () => {
    const { proxy, port } = await start(own);
    await read(port);
    await proxy.close();
    proxies = proxies.filter((one) => one !== proxy);
    await start(foreign, port);
    await assert.rejects(read(port), /self-signed|self signed|SELF_SIGNED|unable to verify/i);
  });
});
