import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { inspect } from 'node:util';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Network } from '../../net/dialer.ts';
import { plainTarget, tunnelTarget } from '../request/target.ts';
import { proxyAuthorization } from './proxy-credentials.ts';
import { upstreamProxyRoute } from './upstream-proxy.ts';

type Answer = (request: IncomingMessage, client: Socket) => void;

describe('connections through an upstream proxy', { timeout: 600_000 }, () => {
  let server: Server;
  let answer: Answer;
  let asked: string[] = [];
  let resolved: string[] = [];
  const sockets: Socket[] = [];

  /** The tunnel ends at an echo. */
  const accept: Answer = (_request, client) => {
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    client.pipe(client);
  };

  before(async () => {
    server = createServer();
    server.on('connection', (socket: Socket) => sockets.push(socket));
    server.on('connect', (request: IncomingMessage, client: Socket) => {
      client.on('error', () => undefined);
      asked.push(`${request.url ?? ''} ${request.headers.host ?? ''}`);
      answer(request, client);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  beforeEach(() => {
    [answer, asked, resolved] = [accept, [], []];
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });

  const network: Network = {
    resolve: async (host) => {
      resolved.push(host);
      return ['10.0.0.9'];
    },
    connect: async (address, port) => {
      assert.deepEqual([address, port], ['10.0.0.9', 3_128]);
      const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    },
    isExcluded: (address) => address === '34.118.224.1',
  };
  const route = upstreamProxyRoute({ host: 'proxy.corp', port: 3_128 }, network);
  const fails = (work: Promise<unknown>, code: 'TEMPER_FETCH_DENIED' | 'TEMPER_FETCH_FAILED', words: RegExp) =>
    assert.rejects(work, (error) => isTemperError(error, code) && words.test(error.message));

  it('the upstream proxy gets the name of the target, and alone resolves it', async () => {
    const { socket, address } = await route(tunnelTarget('api.example.com:8443'), NEVER_ABORTED);
    socket.write('hello');
    const [echo] = (await once(socket, 'data')) as [Buffer];
    assert.deepEqual([String(echo), address], ['hello', '10.0.0.9']);
    assert.deepEqual([asked, resolved], [['api.example.com:8443 api.example.com:8443'], ['proxy.corp']]);
  });

  it('bytes that follow the answer at once are not lost', async () => {
    answer = (_request, client) => void client.write('HTTP/1.1 200 OK\r\n\r\nfirst');
    const { socket } = await route(tunnelTarget('api.example.com:443'), NEVER_ABORTED);
    const [first] = (await once(socket, 'data')) as [Buffer];
    assert.equal(String(first), 'first');
  });

  it('a refusal, and an answer that is not one, ends the connection', async () => {
    const target = tunnelTarget('api.example.com:443');
    answer = (_request, client) => void client.write('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    await fails(route(target, NEVER_ABORTED), 'TEMPER_FETCH_FAILED', /upstream proxy refused.*407/);
    for (const text of ['SSH-2.0-x\r\n', `HTTP/1.1 200 OK\r\nX-Large: ${'a'.repeat(20_000)}\r\n\r\n`]) {
      answer = (_request, client) => void client.write(text);
      await assert.rejects(route(target, NEVER_ABORTED));
    }
    answer = (_request, client) => void client.destroy();
    await assert.rejects(route(target, NEVER_ABORTED));
  });

  describe('which demands credentials', () => {
    let folder: string;
    let file: string;
    const target = tunnelTarget('api.example.com:443');
    const withFile = (credentialFile: string) =>
      upstreamProxyRoute({ host: 'proxy.corp', port: 3_128, credentialFile }, network);

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'temper-proxy-'));
      file = join(folder, 'credentials');
    });
    after(() => rm(folder, { recursive: true }));
    beforeEach(() => {
      answer = (request, client) => {
        const [scheme, credentials = ''] = (request.headers['proxy-authorization'] ?? '').split(' ');
        const text = Buffer.from(credentials, 'base64').toString();
        if (scheme === 'Basic' && text === 'temper:pä:ss word') accept(request, client);
        else client.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="corp"\r\n\r\n');
      };
    });

    it('the proxy gets the credentials of the file, as it is at the time of the connection, and the target gets none', async () => {
      await writeFile(file, 'temper:before\n');
      const rotated = withFile(file);
      await fails(
        rotated(target, NEVER_ABORTED),
        'TEMPER_FETCH_FAILED',
        /status 407: it does not take the credentials/,
      );
      await writeFile(file, 'temper:pä:ss word\n');
      const { socket } = await rotated(target, NEVER_ABORTED);
      socket.write('hello');
      const [echo] = (await once(socket, 'data')) as [Buffer];
      assert.equal(String(echo), 'hello');
    });

    it('without credentials the error says that the proxy demands a password', async () => {
      await fails(route(target, NEVER_ABORTED), 'TEMPER_FETCH_FAILED', /status 407: it demands a password/);
    });

    it('no error contains a part of the credentials, and a file that is none opens no connection', async () => {
      await writeFile(file, 'temper:secret-of-the-proxy');
      const shown = async (work: Promise<unknown>) =>
        work.then(
          () => 'no error',
          (error: unknown) => inspect(error),
        );
      assert.doesNotMatch(await shown(withFile(file)(target, NEVER_ABORTED)), /secret-of|dGVtcGVy/);
      asked = [];
      for (const text of [
        '',
        ':password',
        'secret-without-a-user',
        'temper:secret\r\nX-Injected: 1',
        `a:${'s'.repeat(1_100)}`,
      ]) {
        await writeFile(file, text);
        const pending = withFile(file)(target, NEVER_ABORTED);
        await fails(pending, 'TEMPER_FETCH_FAILED', /no valid credentials of the upstream proxy/);
        const atStart = await shown(proxyAuthorization(file));
        assert.match(atStart, /TEMPER_CONFIGURATION_INVALID/);
        assert.doesNotMatch(atStart, /secret|X-Injected|ssss/);
      }
      await fails(withFile(join(folder, 'none'))(target, NEVER_ABORTED), 'TEMPER_FETCH_FAILED', /no valid credentials/);
      assert.deepEqual(asked, []);
    });
  });

  it('an answer that does not come ends with the signal', async () => {
    answer = () => undefined;
    const stop = new AbortController();
    const pending = route(tunnelTarget('api.example.com:443'), stop.signal);
    stop.abort(new Error('too late'));
    await assert.rejects(pending);
  });

  it('an upstream proxy without an address is an error of the request', async () => {
    for (const resolve of [async () => [], async () => Promise.reject(new Error('ENOTFOUND'))]) {
      const unknown = upstreamProxyRoute({ host: 'proxy.corp', port: 3_128 }, { ...network, resolve });
      const pending = unknown(tunnelTarget('api.example.com:443'), NEVER_ABORTED);
      await fails(pending, 'TEMPER_FETCH_FAILED', /upstream proxy cannot be resolved/);
    }
  });

  it('a request without TLS and an excluded address do not reach the upstream proxy', async () => {
    await fails(route(plainTarget('http://api.example.com/'), NEVER_ABORTED), 'TEMPER_FETCH_DENIED', /only https/);
    await fails(route(tunnelTarget('34.118.224.1:443'), NEVER_ABORTED), 'TEMPER_FETCH_DENIED', /not public/);
    assert.deepEqual(asked, []);
  });
});
