import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { TargetRules } from '../../net/targets.ts';
import { textFetch } from '../../net/fetch.ts';
import { egressFetch } from './egress-fetch.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);
const ANY: TargetRules = { hostDenialReason: () => undefined };

/** What the proxy answers to a `CONNECT`; a tunnel ends at the target server, whatever it names. */
type Proxy = (request: IncomingMessage, client: Socket) => void;

describe('the fetch of a tool in a pod', () => {
  let certificate = '';
  let folder = '';
  let proxy: Server;
  let target: Server;
  let answer: Proxy;
  let requests: IncomingMessage[] = [];
  const sockets: Socket[] = [];

  const listen = async (server: Server): Promise<number> => {
    server.on('connection', (socket: Socket) => sockets.push(socket));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return (server.address() as AddressInfo).port;
  };
  const tunnel: Proxy = (_request, client) => {
    const upstream = connect({ host: '127.0.0.1', port: (target.address() as AddressInfo).port });
    sockets.push(upstream);
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    upstream.on('error', () => client.destroy());
    client.pipe(upstream).pipe(client);
  };
  const refuse =
    (status: number, body: string): Proxy =>
    (_request, client) =>
      void client.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );

  before(async () => {
    const key = await readFile(new URL('key.pem', TLS), 'utf8');
    certificate = await readFile(new URL('certificate.pem', TLS), 'utf8');
    target = createServer({ key, cert: certificate }, ({ url, headers }, response) => {
      if (url === '/moved') response.writeHead(302, { location: 'https://other.example.com/end' });
      response.end(`${headers.host ?? ''}${url ?? ''} ${Object.keys(headers).join(' ')}`);
    });
    await listen(target);
    proxy = createServer({ key, cert: certificate });
    proxy.on('connect', (request: IncomingMessage, client: Socket) => {
      client.on('error', () => undefined);
      requests.push(request);
      answer(request, client);
    });
    const port = await listen(proxy);
    folder = await mkdtemp(join(tmpdir(), 'temper-egress-'));
    const files = { egress: `https://127.0.0.1:${port}`, 'egress-name': 'api.example.com', 'ca.crt': certificate };
    const trusted = { 'egress-ca.crt': certificate };
    for (const [name, text] of Object.entries({ ...files, ...trusted, token: 'pod-token' }))
      await writeFile(join(folder, name), text);
  });
  beforeEach(() => {
    answer = tunnel;
    requests = [];
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await Promise.all([proxy, target].map((server) => new Promise((done) => server.close(done))));
    await rm(folder, { recursive: true });
  });

  const get = (url: string, rules = ANY, from = folder, milliseconds = 20_000) => {
    const files = new EgressEndpoints({ folder: from, tokenFile: join(from, 'token'), clock: systemClock });
    const fetch = textFetch(egressFetch({ files, deliveryToken: () => 'd1.x.y', clock: systemClock }));
    const op: CallOptions = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + milliseconds, key: 'test' };
    return fetch({ url }, rules, op);
  };
  const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
    assert.rejects(work, (error) => {
      assert.ok(isTemperError(error, code), String(error));
      assert.match(error.message, words);
      return true;
    });

  it('a request goes through a tunnel, with the tokens for the proxy alone', async () => {
    const { status, body } = await get('https://api.example.com/a?b=c');
    assert.equal(status, 200);
    assert.match(body, /^api\.example\.com\/a\?b=c /);
    assert.doesNotMatch(body, /proxy-authorization|delivery-token/);
    const [{ url, headers } = {} as IncomingMessage] = requests;
    assert.deepEqual(
      [url, headers['proxy-authorization'], headers['temper-delivery-token']],
      ['api.example.com:443', 'Bearer pod-token', 'd1.x.y'],
    );
  });

  it('each redirect is a tunnel of its own', async () => {
    assert.match((await get('https://api.example.com/moved')).body, /^other\.example\.com\/end /);
    assert.deepEqual(
      requests.map(({ url }) => url),
      ['api.example.com:443', 'other.example.com:443'],
    );
  });

  it('a host that the rules of the call deny does not reach the proxy', async () => {
    const rules: TargetRules = { hostDenialReason: () => 'it is not listed' };
    await failsWith('TEMPER_FETCH_DENIED', get('https://api.example.com/', rules), /not listed/);
    await failsWith('TEMPER_FETCH_DENIED', get('http://api.example.com/', { ...ANY, allowHttp: true }), /https/);
    assert.deepEqual(requests, []);
  });

  it('the refusal of the proxy is the error of the fetch', async () => {
    answer = refuse(403, JSON.stringify({ error: { code: 'TEMPER_AGENT_SUSPENDED', message: 'it is suspended' } }));
    await failsWith('TEMPER_AGENT_SUSPENDED', get('https://api.example.com/'), /^it is suspended$/);
    for (const body of ['', '<html>', '{"error":{"code":"NO_SUCH_CODE","message":"x"}}']) {
      answer = refuse(502, body);
      await failsWith('TEMPER_EGRESS_UNAVAILABLE', get('https://api.example.com/'), /status 502/);
    }
  });

  it('a refusal that does not end is cut off', async () => {
    answer = (_request, client) => void client.write(`HTTP/1.1 403 Refused\r\n\r\n${'x'.repeat(100_000)}`);
    await failsWith('TEMPER_EGRESS_UNAVAILABLE', get('https://api.example.com/'), /cannot be reached/);
  });

  it('a proxy that does not answer ends at the deadline of the call', async () => {
    answer = () => undefined;
    const pending = get('https://api.example.com/', ANY, folder, 50);
    await failsWith('TEMPER_FETCH_FAILED', pending, /no complete response in time/);
  });

  it('a tunnel to a server with the certificate of another host carries no request', async () => {
    await failsWith('TEMPER_FETCH_FAILED', get('https://evil.example.org/'), /ERR_TLS_CERT_ALTNAME_INVALID/);
  });

  it('without the certificate authorities of the platform, a pod trusts the public ones alone', async () => {
    const other = await mkdtemp(join(tmpdir(), 'temper-egress-'));
    for (const name of ['egress', 'egress-name', 'ca.crt', 'token'])
      await writeFile(join(other, name), await readFile(join(folder, name)));
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/', ANY, other), /SELF_SIGNED_CERT/);
    await rm(other, { recursive: true });
  });

  it('a pod without the address of a proxy says that it has no egress', async () => {
    await failsWith(
      'TEMPER_EGRESS_UNAVAILABLE',
      get('https://api.example.com/', ANY, join(folder, 'none')),
      /no network egress/,
    );
  });

  it('a proxy without a certificate of the installation gets no token', async () => {
    const other = await mkdtemp(join(tmpdir(), 'temper-egress-'));
    for (const name of ['egress', 'ca.crt', 'token'])
      await writeFile(join(other, name), await readFile(join(folder, name)));
    await writeFile(join(other, 'egress-name'), 'temper-egress.temper-system.svc');
    await failsWith('TEMPER_EGRESS_UNAVAILABLE', get('https://api.example.com/', ANY, other), /CERT/);
    assert.deepEqual(requests, []);
    await rm(other, { recursive: true });
  });
});
