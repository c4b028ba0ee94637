import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { pollValue } from '../../../test/support/poll.ts';
import { statusOf, TestServer } from './server.testing.ts';
import type { GatewayServerOptions } from './server.ts';

const MIB = 1_048_576;
const GOOD = { authorization: 'Bearer good-anna' };
const HOST = 'Host: gateway\r\n';
const ANNA = `${HOST}Authorization: Bearer good-anna\r\n`;
const JSON_TYPE = 'Content-Type: application/json\r\n';
/** Short, because the tests wait for them. Every connection of these tests is one that must be closed. */
const SHORT = { connectionsCheckingInterval: 20, headersTimeout: 150, requestTimeout: 150 };

/** Resolves also after an error, which a reset of the connection may be. */
async function whenClosed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}

describe('hostile requests', () => {
  let test: TestServer;

  async function start(options: Partial<GatewayServerOptions> = {}): Promise<void> {
    test = await TestServer.start(options);
  }
  afterEach(() => test[Symbol.asyncDispose]());

  /** Sends the head and then body bytes until the server closes the connection. */
  async function sendUntilClosed(head: string): Promise<{ received: string; sent: number }> {
    const socket = await test.open();
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
    socket.write(head);
    let sent = 0;
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    while (!socket.destroyed && socket.writable) {
      sent += 65_536;
      if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
      await new Promise(setImmediate);
    }
    await closed;
    return { received, sent };
  }

  it('the server refuses a body of many small values before it parses any of them', async (context) => {
    await start();
    const body = `{"lease":"bad","items":[${'[],'.repeat(300_000)}[]]}`;
    const parse = context.mock.method(JSON, 'parse');
    assert.equal(await test.status('/echo', GOOD, body), 413);
    assert.equal(parse.mock.callCount(), 0);
    parse.mock.restore();
  });

  it('an agent that is refused again and again waits for its refusals, and no other agent waits', async () => {
    await start({ refusalDelays: { atOnce: { perSecond: 0.001, burst: 2 }, maxDelayMs: 600_000 } });
    const refused = async (name: string) =>
      `${name} ${await test.status('/few', { authorization: `Bearer good-${name}` }, '[')}`;
    assert.deepEqual([await refused('anna'), await refused('anna')], ['anna 400', 'anna 400']);
    const waiting = refused('anna');
    assert.equal(await Promise.race([waiting, refused('bert')]), 'bert 400');
    assert.equal(await test.status('/few', GOOD, '[1]'), 200);
    test.server.server.closeAllConnections();
    assert.equal(await waiting, 'anna 0', 'without a response');
  });

  it('a route sets its own limit of values', async () => {
    await start();
    assert.equal(await test.status('/few', GOOD, '[1,2,3,4]'), 200);
    assert.equal(await test.status('/few', GOOD, '[1,2,3,4,5]'), 413);
    assert.equal(await test.status('/few', GOOD, '["1,2,3,4,5,[[[{{"]'), 200);
  });

  it('the server refuses deep nesting of lists, objects and both before it parses', async (context) => {
    await start();
    const parse = context.mock.method(JSON, 'parse');
    for (const open of ['[', '{"a":', '[{"a":']) {
      assert.equal(await test.status('/echo', GOOD, open.repeat(101)), 400, open);
    }
    assert.equal(parse.mock.callCount(), 0);
    parse.mock.restore();
  });

  it('the server refuses members that change a prototype, and numbers beyond the largest one', async () => {
    await start();
    for (const body of [
      '{"__proto__":{"polluted":1}}',
      '{"\\u005f_proto__":{"polluted":1}}',
      '{"constructor":{"prototype":{"polluted":1}}}',
      '[{"a":[{"__proto__":[]}]}]',
      '{"a":1e999}',
      `[${'9'.repeat(400)}]`,
    ]) {
      assert.equal(await test.status('/echo', GOOD, body), 400, body.slice(0, 60));
    }
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('the server names the field of a number beyond the largest one', async () => {
    await start();
    for (const [body, field] of [
      ['{"a":[1,{"b":-1e400}]}', 'body.a.1.b'],
      ['1e999', 'body'],
      [`{"a\\u001b[2J":${'9'.repeat(400)}}`, 'body.a\\\\u{1b}[2J'],
    ] as const) {
      const received = await test.exchange(
        `POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      assert.equal(statusOf(received), 400, body);
      assert.ok(received.includes(`"message":"${field} must be a number up to`), received);
    }
  });

  it('the server reads no body for an unknown route, a caller without a valid token, or one above its share', async () => {
    const limits = { perSecond: 0.001, burst: 1, inFlight: 1, longPolls: 1 };
    await start({ rateLimits: { pod: limits, users: limits } });
    assert.equal(await test.status('/quick', { authorization: 'Bearer good-loud' }), 200);
    const chunked = `${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n`;
    for (const [line, status] of [
      [`POST /nowhere HTTP/1.1\r\n${chunked}\r\n`, 404],
      [`POST /echo HTTP/1.1\r\n${chunked}\r\n`, 401],
      [`POST /echo HTTP/1.1\r\n${chunked}Authorization: Bearer bad\r\n\r\n`, 401],
      [`POST /echo HTTP/1.1\r\n${chunked}Authorization: Bearer good-loud\r\n\r\n`, 429],
      [`GET /quick HTTP/1.1\r\n${chunked}Authorization: Bearer good-anna\r\n\r\n`, 400],
      [`POST /%zz HTTP/1.1\r\n${chunked}\r\n`, 400],
    ] as const) {
      const { received } = await sendUntilClosed(line);
      assert.equal(statusOf(received), status, line);
      assert.match(received, /connection: close/i, line);
      assert.match(received, /\{"error":\{"code":"TEMPER_/, line);
    }
  });

  it('the server reads no more of a chunked body than the limit of its route', async () => {
    await start();
    const { received } = await sendUntilClosed(
      `POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n`,
    );
    assert.equal(statusOf(received), 413);
  });

  it('the server refuses a declared length above the limit of the route before the body arrives', async () => {
    await start();
    const head = `POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Content-Length: ${64 * MIB}\r\n\r\n`;
    const received = await test.exchange(head);
    assert.equal(statusOf(received), 413);
  });

  it('the server refuses compressed bodies and other types than JSON', async () => {
    await start();
    for (const encoding of ['gzip', 'deflate', 'br', 'identity, gzip']) {
      assert.equal(await test.status('/echo', { ...GOOD, 'content-encoding': encoding }, '{}'), 400, encoding);
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      assert.equal(await test.status('/echo', { ...GOOD, 'content-type': type }, '{}'), 415, type);
    }
    assert.equal(await test.status('/echo', { ...GOOD, 'content-type': 'application/json; charset=utf-8' }, '{}'), 200);
  });

  it('the server closes a connection that never ends its handshake', async () => {
    await start({ timeouts: { handshakeTimeout: 100 } });
    const silent = connect(test.port, '127.0.0.1').on('error', () => undefined);
    await whenClosed(silent);
  });

  it('the server closes a connection that never ends its headers or its body, also when they arrive a byte at a time', async () => {
    await start({ timeouts: SHORT });
    const sockets = await Promise.all(Array.from({ length: 4 }, () => test.open()));
    const [, headers, slow, body] = sockets;
    headers?.write(`GET /quick HTTP/1.1\r\n${HOST}X-A: `);
    slow?.write(`GET /quick HTTP/1.1\r\n${HOST}X-A: `);
    body?.write(`POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Content-Length: 100\r\n\r\n{"a":`);
    const trickle = setInterval(() => slow?.write('a'), 10);
    try {
      await Promise.all(sockets.map(whenClosed));
    } finally {
      clearInterval(trickle);
    }
  });

  it('the server refuses a flood of headers, and one huge header', async () => {
    await start();
    const many = Array.from({ length: 2_000 }, (_, index) => `X-${index}: 1234567890\r\n`).join('');
    for (const flood of [many, `Idempotency-Key: ${'k'.repeat(20_000)}\r\n`]) {
      assert.equal(statusOf(await test.exchange(`GET /quick HTTP/1.1\r\n${ANNA}${flood}\r\n`)), 431);
    }
  });

  it('the server offers HTTP/1.1 alone, so no client multiplexes or resets streams', async () => {
    await start();
    const socket = await test.open(['h2', 'http/1.1']);
    assert.equal(socket.alpnProtocol, 'http/1.1');
    await assert.rejects(test.open(['h2']));
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    assert.equal(statusOf(await test.exchange(preface)), 400);
  });

  it('a long poll whose client closes its half of the connection ends, and its share is free again', async () => {
    const limits = { perSecond: 1_000, burst: 1_000, inFlight: 4, longPolls: 1 };
    await start({ rateLimits: { pod: limits, users: limits } });
    const poll = `GET /held HTTP/1.1\r\n${ANNA}\r\n`;
    const socket = await test.open();
    socket.resume();
    socket.write(poll);
    await pollValue(
      'the started poll',
      () => test.held.started,
      (started) => started === 1,
    );
    assert.equal(await test.status('/held', GOOD), 429);
    socket.end();
    await pollValue(
      'the end of the poll',
      () => test.held.disconnected,
      (count) => count === 1,
    );
    const other = await test.open();
    other.write(poll);
    await pollValue(
      'the second poll',
      () => test.held.started,
      (started) => started === 2,
    );
  });

  it('a client that leaves is no failure in the log', async () => {
    await start();
    const socket = await test.open();
    socket.write(`GET /held HTTP/1.1\r\n${ANNA}\r\n`);
    await pollValue(
      'the started poll',
      () => test.held.started,
      (started) => started === 1,
    );
    socket.destroy();
    await pollValue(
      'the end of the poll',
      () => test.held.disconnected,
      (count) => count === 1,
    );
    test.release.resolve();
    // Answered after the error of the request that its client left.
    assert.equal(await test.status('/quick', GOOD), 200);
    assert.deepEqual(
      test.lines.filter((line) => line.includes('a request failed')),
      [],
    );
  });

  it('a client that does not read large responses has few of them, and its connections end', async () => {
    await start({ timeouts: { connectionTimeout: 1_000 } });
    const request = `GET /large HTTP/1.1\r\n${ANNA}\r\n`;
    const sockets = await Promise.all([test.open(), test.open()]);
    for (const socket of sockets) socket.pause().write(request);
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    await pollValue(
      'the refusal of a third response',
      () => test.status('/large', GOOD),
      (status) => status === 429,
    );
    await pollValue(
      'a small response',
      () => test.status('/quick', GOOD),
      (status) => status === 200,
    );
    await pollValue(
      'a free place',
      () => test.status('/large', GOOD),
      (status) => status === 200,
    );
    for (const socket of sockets) socket.resume();
    await Promise.all(closed);
  });

  it('clients that leave while their tokens are checked keep no place', async () => {
    const limits = { perSecond: 1_000, burst: 1_000, inFlight: 2, longPolls: 2 };
    await start({ rateLimits: { pod: limits, users: limits } });
    const checked = Promise.withResolvers<void>();
    test.checked = checked.promise;
    const request = `POST /echo HTTP/1.1\r\n${ANNA}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`;
    for (let client = 0; client < 20; client += 1) {
      const socket = await test.open();
      socket.write(request);
      await pollValue(
        'the request',
        () => test.received,
        (received) => received === client + 1,
      );
      socket.destroy();
    }
    await pollValue(
      'the ends of the connections',
      () => test.connections(),
      (count) => count === 0,
    );
    checked.resolve();
    assert.equal(await test.status('/echo', GOOD, '{}'), 200);
    assert.equal(await test.status('/echo', GOOD, `"${'x'.repeat(900_000)}"`), 200);
  });

  it('requests that one connection pipelines are limited like those of many connections', async () => {
    const limits = { perSecond: 0.001, burst: 5, inFlight: 5, longPolls: 1 };
    await start({ rateLimits: { pod: limits, users: limits } });
    const one = `GET /quick HTTP/1.1\r\n${ANNA}\r\n`;
    const last = `GET /quick HTTP/1.1\r\n${ANNA}Connection: close\r\n\r\n`;
    const received = await test.exchange(`${one.repeat(49)}${last}`);
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
    assert.equal(statuses.length, 50);
    assert.equal(statuses.filter((status) => status === '200').length, 5);
    assert.equal(statuses.filter((status) => status === '429').length, 45);
  });

  it('an address has a limited number of connections, and connections of users do not count', async () => {
    await start({ connectionLimits: { max: 100, perAddress: 3 } });
    const user = await test.open();
    user.write(`GET /users/team-a HTTP/1.1\r\n${HOST}Temper-Token: team-a\r\n\r\n`);
    await once(user, 'data');
    const first = await test.open();
    await test.open();
    await test.open();
    await assert.rejects(test.open());
    assert.ok(!user.destroyed);
    first.destroy();
    await pollValue(
      'a free connection',
      () =>
        test.open().then(
          () => true,
          () => false,
        ),
      (opened) => opened,
    );
  });

  it('the server has a limited number of connections', async () => {
    await start({ connectionLimits: { max: 2, perAddress: 100 } });
    await test.open();
    await test.open();
    await assert.rejects(test.open());
  });
});

describe('the shares of bytes', () => {
  const tight = { perSecond: 1, burst: 1_000, inFlight: 2_000 };
  const wide = { perSecond: 1, burst: 3_000, inFlight: 10_000 };
  const body = JSON.stringify('x'.repeat(598));
  const token = (name: string) => ({ authorization: `Bearer good-${name}` });

  it('an agent above its bytes per second gets Retry-After, other agents are served, and their namespace has a share too', async () => {
    await using test = await TestServer.start({
      byteLimits: { caller: tight, namespace: wide, totalInFlight: 100_000 },
    });
    assert.equal(await test.status('/echo', token('anna'), body), 200);
    const refused = await test.exchange(
      `POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Connection: close\r\nContent-Length: 600\r\n\r\n${body}`,
    );
    assert.equal(statusOf(refused), 429);
    const [, seconds = ''] = /retry-after: (\d+)/i.exec(refused) ?? [];
    assert.ok(Number(seconds) > 0 && Number(seconds) <= 200, seconds);
    assert.equal(await test.status('/quick', token('anna')), 200);
    for (const other of ['bert', 'carl', 'dora', 'emil']) {
      assert.equal(await test.status('/echo', token(other), body), 200, other);
    }
    assert.equal(await test.status('/echo', token('fritz'), body), 429);
    assert.equal(await test.status('/echo', token('team-b.gerd'), body), 200);
    assert.equal(await test.status('/users/team-a', { 'temper-token': 'team-a' }, body), 200);
    assert.equal(await test.status('/users/team-a', { 'temper-token': 'team-a' }, body), 429);
  });

  it('a body of unknown length is charged as it arrives', async () => {
    await using test = await TestServer.start({
      byteLimits: {
        caller: { ...tight, inFlight: 2 * MIB },
        namespace: { ...wide, burst: 100_000, inFlight: 4 * MIB },
        totalInFlight: 8 * MIB,
      },
    });
    // The bucket must hold what the body may have at most, or be full.
    const chunked = `POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n${body}\r\n0\r\n\r\n`;
    assert.equal(statusOf(await test.exchange(chunked)), 200);
    assert.equal(statusOf(await test.exchange(chunked)), 429);
  });

  it('bodies of requests in progress count until their responses end', async () => {
    const roomy = { perSecond: 1_000_000, burst: 1_000_000, inFlight: 1_000 };
    await using test = await TestServer.start({
      byteLimits: { caller: roomy, namespace: { ...roomy, inFlight: 1_500 }, totalInFlight: 1_600 },
    });
    const begin = async (name: string): Promise<void> => {
      const socket = await test.open();
      const head = `POST /echo HTTP/1.1\r\n${HOST}Authorization: Bearer good-${name}\r\n${JSON_TYPE}`;
      socket.write(`${head}Content-Length: 600\r\n\r\n"`);
    };
    await begin('anna');
    await pollValue(
      'the refusal of a second body of the agent',
      () => test.status('/echo', token('anna'), body),
      (status) => status === 429,
    );
    await begin('bert');
    await pollValue(
      'the refusal of a third body of the namespace',
      () => test.status('/echo', token('carl'), body),
      (status) => status === 429,
    );
    assert.equal(await test.status('/echo', token('team-b.dora'), body), 503);
  });

  it('a body counts no longer than its request, whether that succeeds, is refused or is broken off', async () => {
    const roomy = { perSecond: 1_000_000, burst: 1_000_000, inFlight: 700 };
    await using test = await TestServer.start({
      byteLimits: { caller: roomy, namespace: roomy, totalInFlight: 700 },
    });
    for (let round = 0; round < 3; round += 1) {
      assert.equal(await test.status('/echo', token('anna'), body), 200);
      assert.equal(await test.status('/names', token('anna'), body), 400);
      const socket = await test.open();
      socket.write(`POST /echo HTTP/1.1\r\n${ANNA}${JSON_TYPE}Content-Length: 600\r\n\r\n"`);
      await pollValue(
        'the started body',
        () => test.status('/echo', token('anna'), body),
        (status) => status === 429,
      );
      socket.destroy();
      await pollValue(
        'the end of the broken body',
        () => test.status('/echo', token('anna'), body),
        (status) => status === 200,
      );
    }
  });
});
