import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { constants, createZstdCompress, brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { readBytes } from '../lib/async/read-body.ts';
import { isTemperError } from '../lib/errors.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Network } from './dialer.ts';
import { createSafeFetch, type FetchRequest } from './fetch.ts';
import type { TargetRules } from './targets.ts';

const FIXTURES = join(import.meta.dirname, '../../test/fixtures/tls');
const PUBLIC = '93.184.215.14';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let handler: Handler = (_request, response) => response.end('unset');
let secure: Server;
let plain: Server;
let certificate = '';
/** The targets to which the fetch connected, as text. */
let dialled: string[] = [];
let names: Record<string, readonly string[]> = {};

/** Names resolve to the public addresses that the test sets; the connection ends at the loopback server. */
const network: Network = {
  resolve: (host) => Promise.resolve(names[host] ?? []),
  connect(address, port) {
    dialled.push(`${address}:${port}`);
    const { port: real } = (port === 80 ? plain : secure).address() as AddressInfo;
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: real }, () => resolve(socket));
      socket.once('error', reject);
    });
  },
};

function op(milliseconds = 20_000): CallOptions {
  return { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + milliseconds, key: 'test' };
}

const LISTED: TargetRules = {
  hostDenialReason: (host) => (host.endsWith('.example.com') || host === PUBLIC ? undefined : 'it is not listed'),
};

function get(request: FetchRequest | string, rules = LISTED, operation = op()) {
  const safeFetch = createSafeFetch({ clock: systemClock, network, certificateAuthorities: [certificate] });
  return safeFetch(typeof request === 'string' ? { url: request } : request, rules, operation);
}

async function failsWith(code: ErrorCode, work: Promise<unknown>, words?: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isTemperError(error), String(error));
    assert.equal(error.code, code, error.message);
    if (words !== undefined) assert.match(error.message, words);
    return true;
  });
}

describe('the fetch of a tool', () => {
  before(async () => {
    certificate = await readFile(join(FIXTURES, 'certificate.pem'), 'utf8');
    const key = await readFile(join(FIXTURES, 'key.pem'), 'utf8');
    secure = createHttps({ key, cert: certificate }, (request, response) => handler(request, response));
    plain = createHttp((request, response) => handler(request, response));
    for (const server of [secure, plain]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    names = { 'api.example.com': [PUBLIC], 'other.example.com': ['1.1.1.1'] };
  });
  after(async () => {
    for (const server of [secure, plain]) await new Promise((done) => server.close(done));
  });

  it('the fetch connects to the validated address, with the name in SNI, Host and certificate', async () => {
    dialled = [];
    let seen: unknown[] = [];
    handler = (request, response) => {
      seen = [request.headers.host, (request.socket as unknown as { servername: string }).servername, request.url];
      response.setHeader('content-type', 'text/plain').setHeader('set-cookie', 'secret=1').end('hello');
    };
    const response = await get('https://api.example.com/a?b=c');
    assert.deepEqual(dialled, [`${PUBLIC}:443`]);
    assert.deepEqual(seen, ['api.example.com', 'api.example.com', '/a?b=c']);
    assert.equal(response.body, 'hello');
    assert.equal(response.headers['content-type'], 'text/plain');
    assert.equal(response.headers['set-cookie'], undefined);
    assert.equal(response.redirected, false);
  });

  it('a name with one address that is not public is rejected without a connection', async () => {
    dialled = [];
    names['mixed.example.com'] = [PUBLIC, '10.0.0.7'];
    names['mapped.example.com'] = ['::ffff:169.254.169.254'];
    await failsWith('TEMPER_FETCH_DENIED', get('https://mixed.example.com/'), /not public/);
    await failsWith('TEMPER_FETCH_DENIED', get('https://mapped.example.com/'), /not public/);
    assert.deepEqual(dialled, []);
  });

  it('a name that is not allowed is not resolved', async () => {
    const asked: string[] = [];
    const spying: Network = { ...network, resolve: (host) => (asked.push(host), Promise.resolve([PUBLIC])) };
    const safeFetch = createSafeFetch({ clock: systemClock, network: spying });
    await failsWith('TEMPER_FETCH_DENIED', safeFetch({ url: 'https://secret-data.evil.test/' }, LISTED, op()));
    assert.deepEqual(asked, []);
  });

  it('a resolver that never answers ends at the deadline and at the cancellation of the caller', {
    timeout: 300_000,
  }, async () => {
    let asked = 0;
    const deaf: Network = { ...network, resolve: () => ((asked += 1), new Promise<never>(() => undefined)) };
    const safeFetch = createSafeFetch({ clock: systemClock, network: deaf });
    const request = { url: 'https://a.example.com/' };
    await failsWith('TEMPER_FETCH_FAILED', safeFetch(request, LISTED, op(20)), /no complete response in time/);
    const controller = new AbortController();
    const pending = safeFetch(request, LISTED, { ...op(), signal: controller.signal });
    controller.abort(new Error('enough'));
    await failsWith('TEMPER_FETCH_FAILED', pending);
    assert.equal(asked, 2);
  });
  it('the fetch resolves each name only once, so that DNS rebinding has no effect', async () => {
    let times = 0;
    const rebinding: Network = {
      ...network,
      resolve: () => Promise.resolve(times++ === 0 ? [PUBLIC] : ['127.0.0.1']),
    };
    dialled = [];
    handler = (_request, response) => response.end('first');
    const safeFetch = createSafeFetch({
      clock: systemClock,
      network: rebinding,
      certificateAuthorities: [certificate],
    });
    assert.equal((await safeFetch({ url: 'https://api.example.com/' }, LISTED, op())).body, 'first');
    assert.deepEqual(dialled, [`${PUBLIC}:443`]);
    assert.equal(times, 1);
  });

  it('a server whose certificate is for another name is rejected', async () => {
    names['wrong.example.com'] = [PUBLIC];
    await failsWith('TEMPER_FETCH_FAILED', get('https://wrong.example.com/'), /ERR_TLS_CERT_ALTNAME_INVALID/);
  });

  it('the fetch follows redirects, validates each target, and drops credentials for another origin', async () => {
    const seen: (string | undefined)[] = [];
    handler = (request, response) => {
      seen.push(request.headers.authorization);
      if (request.headers.host === 'api.example.com') {
        response.writeHead(302, { location: 'https://other.example.com/there' }).end();
      } else response.end('there');
    };
    const response = await get({ url: 'https://api.example.com/', headers: { Authorization: 'Bearer x' } });
    assert.deepEqual(seen, ['Bearer x', undefined]);
    assert.deepEqual(
      [response.body, response.redirected, response.url],
      ['there', true, 'https://other.example.com/there'],
    );
  });

  for (const location of [
    'http://169.254.169.254/latest/meta-data/',
    'https://169.254.169.254/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://localhost/',
    'https://evil.test/',
    'http://api.example.com/',
    'https://2130706433/',
    'file:///etc/passwd',
    '//127.0.0.1/',
  ]) {
    it(`the fetch does not follow a redirect to ${location}`, async () => {
      handler = (_request, response) => response.writeHead(302, { location }).end();
      dialled = [];
      const isFromRedirect =
        location.startsWith('http:') && location.includes('example') ? undefined : /^api\.example\.com redirects/;
      await failsWith('TEMPER_FETCH_DENIED', get('https://api.example.com/'), isFromRedirect);
      assert.deepEqual(dialled, [`${PUBLIC}:443`]);
    });
  }

  it('the fetch stops after five redirects', async () => {
    handler = (_request, response) => response.writeHead(307, { location: '/again' }).end();
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'), /5 redirects/);
  });

  it('a POST becomes a GET after 303 and stays a POST after 307', async () => {
    const seen: string[] = [];
    handler = (request, response) => {
      seen.push(`${request.method} ${request.url}`);
      if (request.url === '/see') response.writeHead(303, { location: '/end' }).end();
      else if (request.url === '/same') response.writeHead(307, { location: '/end' }).end();
      else response.end();
    };
    await get({ url: 'https://api.example.com/see', method: 'POST', body: 'x' });
    await get({ url: 'https://api.example.com/same', method: 'POST', body: 'x' });
    assert.deepEqual(seen, ['POST /see', 'GET /end', 'POST /same', 'POST /end']);
  });

  it('a body that is too large is rejected, also when only its decompressed size is', async () => {
    handler = (_request, response) => response.end(Buffer.alloc(1_048_577, 97));
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'), /larger than 1048576/);
    handler = (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50_000_000)));
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'), /larger than 1048576/);
  });

  it('the fetch reads a compressed body of each encoding that it accepts', async () => {
    for (const [encoding, bytes] of Object.entries({
      gzip: gzipSync('packed'),
      deflate: deflateSync('packed'),
      br: brotliCompressSync('packed'),
      zstd: zstdCompressSync('packed'),
    })) {
      handler = (_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(bytes);
      assert.equal((await get('https://api.example.com/')).body, 'packed', encoding);
    }
  });

  it('a zstd body whose window needs more memory than HTTP allows is rejected', async () => {
    const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_enableLongDistanceMatching]: 1 };
    const stream = createZstdCompress({ params });
    stream.end('x'.repeat(100_000));
    const bytes = await readBytes(stream, 1_048_576, () => new Error('too large'));
    handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'zstd' }).end(bytes);
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'));
  });

  it('a broken connection, an invalid response and a missing response are reported as failures', async () => {
    handler = (request) => request.socket.destroy();
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'));
    handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('not gzip');
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'));
    handler = (_request, response) =>
      response.writeHead(200, { 'content-length': '10' }).write('abc', () => response.destroy());
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'));
    handler = () => {};
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/', LISTED, op(200)), /in time/);
    handler = (_request, response) => response.writeHead(200, { 'x-long': 'a'.repeat(100_000) }).end();
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/'));
  });

  it('a slow response is cut off at the deadline of the caller', async () => {
    let drip: NodeJS.Timeout | undefined;
    handler = (_request, response) => {
      response.writeHead(200);
      drip = setInterval(() => response.write('.'), 20);
      response.once('close', () => clearInterval(drip));
    };
    await failsWith('TEMPER_FETCH_FAILED', get('https://api.example.com/', LISTED, op(300)), /in time/);
    clearInterval(drip);
  });

  it('the fetch sends only allowlisted headers, without line breaks', async () => {
    for (const headers of [
      { Host: 'evil.test' },
      { 'Transfer-Encoding': 'chunked' },
      { accept: 'a\r\nHost: evil.test' },
    ]) {
      await failsWith('TEMPER_FETCH_DENIED', get({ url: 'https://api.example.com/', headers }));
    }
    await failsWith('TEMPER_FETCH_DENIED', get({ url: 'https://api.example.com/', method: 'CONNECT' }));
    await failsWith('TEMPER_FETCH_DENIED', get({ url: 'https://api.example.com/', method: 'GET /\r\nX' }));
  });

  it('plain http is used only where the caller allows it', async () => {
    handler = (_request, response) => response.end('plain');
    await failsWith('TEMPER_FETCH_DENIED', get('http://api.example.com/'), /only https/);
    assert.equal((await get('http://api.example.com/', { ...LISTED, allowHttp: true })).body, 'plain');
  });

  it('a public IP address is reachable when the certificate contains the address', async () => {
    handler = (_request, response) => response.end('literal');
    assert.equal((await get(`https://${PUBLIC}/`)).body, 'literal');
  });

  it('a private address is rejected as a literal, as localhost and as the result of a DNS lookup', async () => {
    names['inside.example.com'] = ['127.0.0.1'];
    const { port } = secure.address() as AddressInfo;
    const rules: TargetRules = { allowHttp: true, ports: [port], hostDenialReason: () => undefined };
    await failsWith('TEMPER_FETCH_DENIED', get(`https://inside.example.com:${port}/`, rules));
    await failsWith('TEMPER_FETCH_DENIED', get(`https://127.0.0.1:${port}/`, rules));
    await failsWith('TEMPER_FETCH_DENIED', get(`https://localhost:${port}/`, rules));
  });
});
