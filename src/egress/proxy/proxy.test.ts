import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterEach, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { pollAssertion } from '../../../test/support/poll.ts';
import { TemperError } from '../../lib/errors.ts';
import { helloFor } from '../tls/client-hello.testing.ts';
import { CREDENTIALS } from './proxy-client.testing.ts';
import { PUBLIC, TestProxy, type TestProxyOptions } from './proxy.testing.ts';

let test: TestProxy;
async function start(options: TestProxyOptions = {}): Promise<TestProxy> {
  test = await TestProxy.start(options);
  return test;
}
afterEach(() => test[Symbol.asyncDispose]());

/** The lines of the audit, once as many requests have ended. */
async function auditLines(count: number): Promise<Record<string, unknown>[]> {
  const lines = (): Record<string, unknown>[] => test.lines.filter(({ audit }) => audit === 'egress');
  await pollAssertion('the audit lines', () => assert.equal(lines().length, count));
  return lines();
}

function connect(authority: string, head = CREDENTIALS): Promise<string> {
  return test.exchange(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${head}\r\n`);
}

describe('a tunnel through the proxy', { timeout: 600_000 }, () => {
  it('a tunnel reaches the host at the address that was checked, and leaves one line in the log', async () => {
    await start();
    test.handler = (request, response) => response.end(`${request.headers.host}${request.url}`);
    assert.match(await test.get('api.example.com:443', '/a?b'), /^HTTP\/1\.1 200 .*api\.example\.com\/a\?b$/s);
    assert.deepEqual([test.resolved, test.dialled], [['api.example.com'], [`${PUBLIC}:443`]]);
    const [request] = test.authorizer.requests;
    assert.deepEqual(request, {
      token: 'a.b.c',
      deliveryToken: 'd1.x.y',
      address: '127.0.0.1',
      host: 'api.example.com',
      port: 443,
    });
    const [line = {}] = await auditLines(1);
    const { sentBytes, receivedBytes, durationMs, time: _time, from: _from, ...facts } = line;
    assert.deepEqual(facts, {
      level: 'info',
      message: 'request served',
      messageId: 'm-1',
      audit: 'egress',
      method: 'CONNECT',
      host: 'api.example.com',
      port: 443,
      address: PUBLIC,
      encryptedHello: false,
      caller: 'Pod',
      agent: 'anna',
      agentUid: 'uid-1',
      namespace: 'team-a',
      session: 's-1',
      outcome: 'ok',
    });
    for (const number of [sentBytes, receivedBytes, durationMs]) assert.ok(Number(number) > 0, JSON.stringify(line));
  });

  it('a tunnel that its client ends after the answer is served, and one that it leaves before the handshake is cancelled', async () => {
    await start();
    assert.match(await test.getAndLeave('api.example.com:443'), /^HTTP\/1\.1 200 /);
    assert.equal((await auditLines(1))[0]?.['outcome'], 'ok');
    (await test.tunnel('api.example.com:443')).destroy();
    assert.equal((await auditLines(2))[1]?.['outcome'], 'TEMPER_CANCELLED');
  });

  it('a tunnel is served also when its client ends it in the middle of an answer', async () => {
    await start();
    test.handler = (_request, response) => {
      const chunk = Buffer.alloc(65_536);
      const write = (): void => {
        while (response.writable && response.write(chunk));
      };
      response.on('drain', write).on('error', () => undefined);
      write();
    };
    for (let leaving = 1; leaving <= 10; leaving += 1) {
      await test.getAndLeave('api.example.com:443');
      const lines = await auditLines(leaving);
      assert.equal(lines.at(-1)?.['outcome'], 'ok', JSON.stringify(lines.at(-1)));
    }
  });

  it('a request without valid credentials is refused before anything is asked', async () => {
    await start();
    for (const head of ['', 'Proxy-Authorization: Bearer a.b.c\r\n', 'temper-delivery-token: d1.x.y\r\n']) {
      const response = await connect('api.example.com:443', head);
      assert.match(response, /^HTTP\/1\.1 407 .*proxy-authenticate: Bearer/s);
    }
    assert.deepEqual([test.authorizer.requests, test.resolved], [[], []]);
    await auditLines(3);
  });

  it('a host that is not allowed is refused with the reason, and its name is not resolved', async () => {
    await start();
    assert.match(await connect('evil.test:443'), /^HTTP\/1\.1 403 .*TEMPER_POLICY_DENIED.*evil\.test is not granted/s);
    assert.deepEqual([test.resolved, test.dialled], [[], []]);
    assert.equal((await auditLines(1))[0]?.['outcome'], 'TEMPER_POLICY_DENIED');
  });

  it('nothing is allowed while nothing decides', async () => {
    await start();
    test.authorizer.failure = new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'the gateway cannot be reached');
    assert.match(await connect('api.example.com:443'), /^HTTP\/1\.1 503 .*TEMPER_GATEWAY_UNAVAILABLE/s);
    test.authorizer.failure = new TemperError('TEMPER_POD_INVALID', '/etc/temper/endpoints/gateway cannot be read');
    const unusable = await connect('api.example.com:443');
    assert.match(unusable, /^HTTP\/1\.1 503 .*TEMPER_GATEWAY_UNAVAILABLE.*no gateway decides/s);
    assert.doesNotMatch(unusable, /etc/);
    test.authorizer.failure = new Error('a defect');
    const response = await connect('api.example.com:443');
    assert.match(response, /^HTTP\/1\.1 500 .*TEMPER_INTERNAL/s);
    assert.doesNotMatch(response, /a defect/);
    assert.deepEqual(test.resolved, []);
  });

  it('an allowed name with one address that is not public is refused, and no address is connected to', async () => {
    await start({ isExcluded: (address) => address === '34.118.224.1' });
    const answers = [
      [PUBLIC, '10.0.0.7'],
      ['169.254.169.254'],
      ['::ffff:127.0.0.1'],
      ['64:ff9b::a00:1', PUBLIC],
      ['fd00::1'],
      ['34.118.224.1'],
    ];
    for (const addresses of answers) {
      test.names['api.example.com'] = addresses;
      assert.match(await connect('api.example.com:443'), /^HTTP\/1\.1 403 .*not public/s, addresses.join());
    }
    assert.deepEqual(test.dialled, []);
    assert.match(await connect('nothing.example.com:443'), /^HTTP\/1\.1 502 .*has no address/s);
  });

  it('a name is resolved once: a second answer with another address is not asked for', async () => {
    await start();
    const answers = [[PUBLIC], ['127.0.0.1'], ['127.0.0.1']];
    Object.defineProperty(test.names, 'api.example.com', { get: () => answers.shift() });
    assert.match(await test.get('api.example.com:443'), /hello$/);
    assert.deepEqual(test.dialled, [`${PUBLIC}:443`]);
    assert.equal(answers.length, 2);
  });

  it('a TLS handshake for another server ends the tunnel with an alert, and the target gets none of it', async () => {
    await start();
    let requests = 0;
    test.handler = (_request, response) => (requests++, response.end());
    const tunnel = await test.tunnel('api.example.com:443');
    const socket = connectTls({ socket: tunnel, servername: 'other.example.com', rejectUnauthorized: false });
    const [error] = (await once(socket, 'error')) as [Error];
    assert.match(error.message, /alert/i);
    const [line] = await auditLines(1);
    assert.equal(line?.['outcome'], 'TEMPER_FETCH_DENIED');
    assert.deepEqual([requests, line?.['sentBytes']], [0, 0]);
  });

  it('a tunnel carries no protocol but TLS', async () => {
    await start();
    for (const first of ['GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n', 'SSH-2.0-x\r\n', 'EHLO x\r\n']) {
      const tunnel = await test.tunnel('api.example.com:443');
      tunnel.end(first);
      const received = await text(tunnel);
      assert.equal(received.charCodeAt(0), 21, JSON.stringify(received));
    }
    for (const line of await auditLines(3)) {
      assert.deepEqual([line['outcome'], line['sentBytes']], ['TEMPER_FETCH_DENIED', 0]);
    }
  });

  it('the client may send its handshake in single bytes, and close the connection instead', async () => {
    await start();
    const tunnel = await test.tunnel('api.example.com:443');
    const hello = helloFor('api.example.com');
    for (const byte of hello.subarray(0, 40)) {
      tunnel.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    tunnel.write(hello.subarray(40));
    const [answer] = (await once(tunnel, 'data')) as [Buffer];
    // The test's hello has no key share: the target refuses it with an alert of its own.
    assert.equal(answer[0], 21);
    const silent = await test.tunnel('api.example.com:443');
    silent.end();
    await auditLines(2);
    assert.equal(test.connections.size, 0);
  });

  it('a connection ends when a report says so, and its bytes are reported once', async () => {
    await start();
    test.handler = (_request, response) => void response.write('part');
    const stop = new AbortController();
    const running = test.reporter.run(stop.signal);
    const tunnel = await test.tunnel('api.example.com:443');
    const socket = connectTls({ socket: tunnel, servername: 'api.example.com', ca: [test.certificate] });
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n');
    await once(socket, 'data');
    test.authorizer.ended = ({ id }) => ({ id, code: 'TEMPER_AGENT_SUSPENDED', message: 'the agent is suspended' });
    test.reporter.due();
    await once(tunnel, 'close');
    const [line] = await auditLines(1);
    assert.equal(line?.['outcome'], 'TEMPER_AGENT_SUSPENDED');
    stop.abort();
    await running;
    assert.equal(test.authorizer.reportedBytes, Number(line?.['sentBytes']) + Number(line?.['receivedBytes']));
    assert.deepEqual([test.connections.size, test.connections.reportable.length], [0, 0]);
  });

  it('a connection ends at the deadline of its message', async () => {
    await start();
    test.authorizer.remainingMs = 50;
    const tunnel = await test.tunnel('api.example.com:443');
    await once(tunnel.resume(), 'close');
    assert.equal((await auditLines(1))[0]?.['outcome'], 'TEMPER_TIMEOUT');
  });

  it('an agent has no more connections than it may, and closed ones do not count', async () => {
    await start({ limits: { perAgent: 2 } });
    const [first] = await Promise.all([test.tunnel('api.example.com:443'), test.tunnel('other.example.com:443')]);
    assert.match(await connect('api.example.com:443'), /^HTTP\/1\.1 429 .*TEMPER_RATE_LIMITED.*2 open connections/s);
    first.destroy();
    await pollAssertion('the end of the first', () => assert.equal(test.connections.size, 1));
    await test.tunnel('api.example.com:443');
  });

  it('a connection that moves more bytes than it may is ended', async () => {
    await start({ limits: { maxBytes: 100_000 } });
    test.handler = (_request, response) => response.end(Buffer.alloc(1_000_000));
    const received = await test.get('api.example.com:443').catch(() => '');
    assert.ok(received.length < 200_000, String(received.length));
    const [line] = await auditLines(1);
    assert.deepEqual([line?.['outcome'], test.connections.size], ['TEMPER_FETCH_FAILED', 0]);
  });

  it('bytes wait while too many of them are not reported', async () => {
    await start({ limits: { maxUnreportedBytes: 200_000 } });
    test.handler = (_request, response) => response.end(Buffer.alloc(2_000_000));
    let received = '';
    const reading = test.get('api.example.com:443').then((all) => (received = all));
    await pollAssertion('a connection', () => assert.equal(test.connections.size, 1));
    const [connection] = test.connections.reportable;
    await pollAssertion('the limit', () => assert.ok((connection?.unreportedBytes ?? 0) >= 200_000));
    const held = connection?.unreportedBytes ?? 0;
    assert.ok(held < 400_000, String(held));
    assert.equal(received, '');
    const stop = new AbortController();
    const running = test.reporter.run(stop.signal);
    await reading;
    assert.ok(received.length > 2_000_000);
    stop.abort();
    await running;
    assert.ok(test.authorizer.reportedBytes > 2_000_000);
  });
});

describe('a plain request through the proxy', { timeout: 600_000 }, () => {
  const get = (url: string, head = `Host: api.example.com\r\n${CREDENTIALS}`): Promise<string> =>
    test.exchange(`GET ${url} HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);

  it('a request reaches its host without the credentials, and the response comes back', async () => {
    await start();
    let seen: string[] = [];
    test.handler = (request, response) => {
      seen = [request.method ?? '', request.url ?? '', ...request.rawHeaders];
      response.setHeader('X-Answer', '1').end('hello');
    };
    assert.match(await get('http://api.example.com/a?b=c'), /^HTTP\/1\.1 200 .*X-Answer: 1.*hello/s);
    assert.deepEqual(seen, [
      'GET',
      '/a?b=c',
      'host',
      'api.example.com',
      'via',
      '1.1 temper-egress',
      'connection',
      'close',
    ]);
    assert.deepEqual(test.dialled, [`${PUBLIC}:80`]);
    const [line] = await auditLines(1);
    assert.deepEqual([line?.['outcome'], line?.['method'], line?.['port']], ['ok', 'GET', 80]);
    assert.ok(Number(line?.['receivedBytes']) > 5);
  });

  it('a body reaches the host, with a length and in chunks', async () => {
    await start();
    test.handler = (request, response) => void text(request).then((body) => response.end(`got ${body}`));
    const head = `POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n${CREDENTIALS}Connection: close\r\n`;
    assert.match(await test.exchange(`${head}Content-Length: 5\r\n\r\n12345`), /got 12345/);
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n3\r\n345\r\n0\r\n\r\n`;
    assert.match(await test.exchange(chunked), /got 12345/);
  });

  it('each redirect is a request of its own, which is decided on its own', async () => {
    await start();
    test.handler = (_request, response) => {
      response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
    };
    assert.match(await get('http://api.example.com/'), /^HTTP\/1\.1 302 .*location: http:\/\/169/s);
    assert.match(
      await get('http://169.254.169.254/latest/meta-data/', `Host: 169.254.169.254\r\n${CREDENTIALS}`),
      /^HTTP\/1\.1 403 .*TEMPER_FETCH_DENIED/s,
    );
    assert.deepEqual(test.dialled, [`${PUBLIC}:80`]);
  });

  it('a request that two readers could understand differently is refused', async () => {
    await start();
    const host = `Host: api.example.com\r\n${CREDENTIALS}`;
    const requests: [url: string, head: string][] = [
      ['http://api.example.com/', `Host: evil.test\r\n${CREDENTIALS}`],
      ['http://api.example.com/', `${host}Host: evil.test\r\n`],
      ['http://api.example.com/', `${host}Upgrade: websocket\r\n`],
      ['http://user@api.example.com/', host],
      ['https://api.example.com/', host],
      ['/relative', host],
    ];
    for (const [url, head] of requests) {
      assert.match(await get(url, head), /^HTTP\/1\.1 403 .*TEMPER_FETCH_DENIED/s, `${url} ${head}`);
    }
    const smuggled = `${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`;
    assert.match(await get('http://api.example.com/', smuggled), /^HTTP\/1\.1 400 /);
    assert.match(await get('http://api.example.com/', CREDENTIALS), /^HTTP\/1\.1 400 /);
    assert.deepEqual([test.authorizer.requests, test.dialled], [[], []]);
  });

  it('a host that breaks the connection or answers with something else is an error of the request', async () => {
    await start();
    test.handler = (request) => request.socket.destroy();
    assert.match(await get('http://api.example.com/'), /^HTTP\/1\.1 502 .*TEMPER_FETCH_FAILED/s);
    const headers = `X-Large: ${'a'.repeat(20_000)}\r\n`;
    for (const answer of ['SSH-2.0-x\r\n', 'HTTP/1.1 099 X\r\n\r\n', `HTTP/1.1 200 OK\r\n${headers}\r\n`]) {
      test.handler = (request) => request.socket.end(answer);
      assert.match(await get('http://api.example.com/'), /^HTTP\/1\.1 502 .*TEMPER_FETCH_FAILED/s, answer.slice(0, 40));
    }
  });

  it('a host that switches protocols is an error of the request, and frees its place', async () => {
    await start({ limits: { perAgent: 1 } });
    const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\n';
    for (const headers of [upgrade, '', 'Upgrade: websocket\r\n']) {
      test.handler = (request) => void request.socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\n`);
      assert.match(
        await get('http://api.example.com/'),
        /^HTTP\/1\.1 502 .*TEMPER_FETCH_FAILED.*protocols \(101\)/s,
        headers,
      );
    }
    for (const line of await auditLines(3)) assert.equal(line['outcome'], 'TEMPER_FETCH_FAILED');
    assert.equal(test.connections.size, 0);
  });
});

describe('clients that hold the proxy up', { timeout: 600_000 }, () => {
  const SHORT = { headersTimeout: 100, handshakeTimeout: 100, connectionsCheckingInterval: 20 };

  it('a client that sends its request too slowly is cut off', async () => {
    await start({ timeouts: SHORT });
    const socket = await test.open();
    socket.write('CONNECT api.example.com:443 HTTP/1.1\r\nHost: api');
    await once(socket.resume(), 'close');
    assert.deepEqual(test.authorizer.requests, []);
  });

  it('headers beyond their limit are refused', async () => {
    await start();
    const large = `X-Large: ${'a'.repeat(20_000)}\r\n`;
    assert.match(await connect('api.example.com:443', `${CREDENTIALS}${large}`), /^HTTP\/1\.1 431 /);
    assert.deepEqual(test.authorizer.requests, []);
  });

  it('an address has no more connections than it may', async () => {
    await start({ connectionLimits: { perAddress: 5 } });
    await Promise.all(Array.from({ length: 5 }, () => test.open()));
    await assert.rejects(test.open());
  });

  it('the connections of a gateway count for the namespaces of its agents, and one namespace leaves the others a place', async () => {
    await start({ connectionLimits: { perAddress: 3, perSharedAddress: 3, perGroup: 4, groupsPerAddress: 8 } });
    const head = (token: string): string => CREDENTIALS.replace('a.b.c', token);
    test.authorizer.owner = ({ token }) => ({ caller: 'Gateway', namespace: token, agentUid: token });
    const open = (token: string): Promise<unknown> => test.tunnel('api.example.com:443', head(token));
    for (let count = 0; count < 4; count += 1) await open('team-a');
    await assert.rejects(open('team-a'), /429 .*TEMPER_RATE_LIMITED.*namespace team-a .* through this gateway/s);
    await open('team-b');
    await open('team-b');
    // Two places are free: a namespace with as many leaves them to those with fewer.
    await assert.rejects(open('team-b'), /429 .*TEMPER_RATE_LIMITED.*namespace team-b/s);
    await open('team-c');
    const refused = (await auditLines(2)).map(({ caller, namespace, outcome }) => [caller, namespace, outcome]);
    assert.deepEqual(refused, [
      ['Gateway', 'team-a', 'TEMPER_RATE_LIMITED'],
      ['Gateway', 'team-b', 'TEMPER_RATE_LIMITED'],
    ]);
  });

  it('an address of a gateway has a limited number of connections without a valid token', async () => {
    await start({ connectionLimits: { perAddress: 2, perSharedAddress: 4 } });
    test.authorizer.owner = () => ({ caller: 'Gateway' });
    await Promise.all([test.open(), test.open()]);
    await assert.rejects(test.open());
    test.destroyAll();
    await pollAssertion('a tunnel', () => test.tunnel('api.example.com:443'));
    for (let count = 0; count < 4; count += 1) await test.open();
    await assert.rejects(test.open());
  });

  it('the connections of an agent through its pod and through a gateway have a limit each', async () => {
    const { connections } = await start({ limits: { perAgent: 1 } });
    const open = (caller: 'Pod' | 'Gateway', address: string) =>
      connections.open(
        { caller, agentUid: 'uid-1', remainingMs: 60_000 },
        { deliveryToken: 'd1.x.y', address, host: 'api.example.com', port: 443 },
      );
    const opened = [open('Pod', '10.0.0.7'), open('Gateway', '10.0.0.8')];
    assert.throws(() => open('Gateway', '10.0.0.8'), /1 open connections through this gateway/);
    for (const connection of opened) connections.close(connection);
    connections.close(open('Gateway', '10.0.0.8'));
  });

  it('tunnels to many hosts are no connections without a valid token', async () => {
    const unauthenticated = { perSecond: 0.000_001, burst: 2 };
    await start({ connectionLimits: { unauthenticated } });
    for (let count = 0; count < 4; count += 1) assert.match(await test.get('api.example.com:443'), /hello$/);
    test.authorizer.failure = new TemperError('TEMPER_TOKEN_INVALID', 'the token was rejected');
    for (let count = 0; count < 2; count += 1) assert.match(await connect('api.example.com:443'), /^HTTP\/1\.1 407/);
    await assert.rejects(connect('api.example.com:443'));
  });
});
