import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { hasErrno, isTemperError, TemperError } from '../../lib/errors.ts';
import { ApiError } from './kube-client.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { Credentials } from './loaded-cluster.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { userAgent } from './user-agent.ts';
import { createTransport, type KubeRequest, type Transport, type TransportOptions } from './transport.ts';

const PEM = {
  key: readFileSync(new URL('../../../test/fixtures/tls/key.pem', import.meta.url)),
  cert: readFileSync(new URL('../../../test/fixtures/tls/certificate.pem', import.meta.url)),
};
/** One of the names in the certificate. */
const SERVER_NAME = 'api.example.com';
const GET: KubeRequest = { method: 'GET', path: '/api/v1/pods' };
const POST: KubeRequest = { method: 'POST', path: '/api/v1/pods', body: {} };

interface TransportFixture extends AsyncDisposable {
  readonly transport: Transport;
  readonly access: { credentials: Credentials; refreshed: number };
  readonly metrics: RecordingMetrics;
  readonly clock: FakeClock;
}

async function listen(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** A transport to the given server, with a clock that only the test moves. */
async function aFixture(
  server: NetServer & { closeAllConnections?(): void },
  scheme: 'http' | 'https',
  more: Partial<TransportOptions> = {},
): Promise<TransportFixture> {
  const url = new URL(`${scheme}://localhost:${await listen(server)}`);
  const access = {
    credentials: { headers: {}, tls: { ca: PEM.cert, servername: SERVER_NAME } } as Credentials,
    refreshed: 0,
  };
  const cluster: ClusterAccess = {
    server: url,
    namespace: undefined,
    credentials: () => Promise.resolve(access.credentials),
    refresh: () => {
      access.refreshed += 1;
      return Promise.resolve();
    },
  };
  const metrics = new RecordingMetrics();
  const clock = new FakeClock();
  const transport = createTransport({ access: cluster, clock, metrics, ...more });
  return {
    transport,
    access,
    metrics,
    clock,
    async [Symbol.asyncDispose]() {
      await transport[Symbol.asyncDispose]();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections?.();
      await closed;
    },
  };
}

const anHttpFixture = (listener: RequestListener, more: Partial<TransportOptions> = {}): Promise<TransportFixture> =>
  aFixture(createServer(listener), 'http', more);

/** Responds with the given responses in turn, then always with the last one. */
function inTurn(...responses: readonly { status: number; retryAfter?: string; body?: string }[]) {
  let asked = 0;
  const listener: RequestListener = (_request, response) => {
    const { status, retryAfter, body = '{}' } = responses[Math.min(asked, responses.length - 1)] ?? { status: 500 };
    asked += 1;
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    response.end(body);
  };
  return { listener, asked: () => asked };
}

const signal = (): AbortSignal => new AbortController().signal;

describe('the transport', () => {
  it('two hundred calls share at most two connections, and all watches share one', async () => {
    let handshakes = 0;
    const versions = new Set<string>();
    const server = createSecureServer({ ...PEM, allowHTTP1: true }, (request, response) => {
      versions.add(request.httpVersion);
      response.writeHead(200);
      if (request.url === '/watch') response.write('{"type":"BOOKMARK"}\n');
      else response.end('{"kind":"PodList"}');
    });
    server.on('secureConnection', () => (handshakes += 1));
    await using fixture = await aFixture(server, 'https', { clock: systemClock });
    for (let call = 0; call < 100; call += 1) await fixture.transport.send(GET, signal());
    assert.equal(handshakes, 1);
    await Promise.all(Array.from({ length: 100 }, () => fixture.transport.send(GET, signal())));
    assert.ok(handshakes <= 2, `${handshakes} handshakes for 200 calls`);
    const before = handshakes;
    const done = new AbortController();
    for (let watch = 0; watch < 3; watch += 1)
      await fixture.transport.open({ method: 'GET', path: '/watch' }, done.signal);
    assert.equal(handshakes, before + 1);
    assert.deepEqual([...versions], ['2.0']);
    done.abort();
  });

  it('changed certificates open a new connection, equal ones do not', async () => {
    let handshakes = 0;
    const server = createSecureServer({ ...PEM, allowHTTP1: true }, (_request, response) => response.end('{}'));
    server.on('secureConnection', () => (handshakes += 1));
    await using fixture = await aFixture(server, 'https', { clock: systemClock });
    await fixture.transport.send(GET, signal());
    fixture.access.credentials = {
      headers: { authorization: 'Bearer other' },
      tls: { ca: Buffer.from(PEM.cert), servername: SERVER_NAME },
    };
    await fixture.transport.send(GET, signal());
    assert.equal(handshakes, 1);
    fixture.access.credentials = { headers: {}, tls: { ca: PEM.cert, servername: SERVER_NAME, ...PEM } };
    await fixture.transport.send(GET, signal());
    assert.equal(handshakes, 2);
  });

  it('a server whose CA is not configured is rejected', async () => {
    const server = createSecureServer(PEM, (_request, response) => response.end('{}'));
    await using fixture = await aFixture(server, 'https', { clock: systemClock });
    fixture.access.credentials = { headers: {}, tls: { servername: SERVER_NAME } };
    await assert.rejects(fixture.transport.send(GET, signal()), (error) => {
      assert.ok(isTemperError(error, 'TEMPER_KUBE_UNREACHABLE'));
      assert.ok(hasErrno(error.cause, 'DEPTH_ZERO_SELF_SIGNED_CERT'));
      return true;
    });
  });

  it('send passes method, path, body, content type, the component, and the headers of the credentials', async () => {
    const seen: unknown[] = [];
    await using fixture = await anHttpFixture(
      (request, response) => {
        const chunks: Buffer[] = [];
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
          const { method, url, headers } = request;
          seen.push([
            method,
            url,
            headers['content-type'],
            headers.accept,
            headers.authorization,
            headers['user-agent'],
            String(Buffer.concat(chunks)),
          ]);
          response.end('{"a":1,"__proto__":{"b":2}}');
        });
      },
      { component: 'operator' },
    );
    fixture.access.credentials = { headers: { authorization: 'Bearer t' }, tls: {} };
    const result = await fixture.transport.send({ ...POST, contentType: 'application/x', body: { z: 1 } }, signal());
    assert.deepEqual(result, { a: 1 });
    const agent = userAgent('operator');
    assert.match(agent, /^temper-operator\/\d+\.\d+\.\d+\S* \([a-z0-9]+\/[a-z0-9]+\)$/);
    const head = ['POST', '/api/v1/pods', 'application/x', 'application/json', 'Bearer t', agent];
    assert.deepEqual(seen, [[...head, '{"z":1}']]);
    assert.equal(fixture.metrics.counts['rest_client_requests_total{200}'], 1);
  });

  it('an error response becomes an ApiError with status and reason', async () => {
    const body = JSON.stringify({
      kind: 'Status',
      reason: 'AlreadyExists',
      message: 'pods "x" already exists\u001b[31m',
    });
    await using fixture = await anHttpFixture(inTurn({ status: 409, body }, { status: 404, body: '<html>' }).listener);
    await assert.rejects(fixture.transport.send(POST, signal()), (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual([error.status, error.reason], [409, 'AlreadyExists']);
      assert.equal(error.message, 'POST /api/v1/pods: 409 AlreadyExists pods "x" already exists\\u{1b}[31m');
      return true;
    });
    await assert.rejects(fixture.transport.send(GET, signal()), { status: 404, reason: '' });
  });

  it('send retries three times after the Retry-After of a 429', async () => {
    const { listener, asked } = inTurn({ status: 429, retryAfter: '7' });
    await using fixture = await anHttpFixture(listener);
    const call = assert.rejects(fixture.transport.send(POST, signal()), { status: 429, retryAfterSeconds: 7 });
    for (let retry = 1; retry <= 3; retry += 1) {
      while (fixture.clock.pendingDelays().length === 0) await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(fixture.clock.pendingDelays(), [7_000]);
      assert.equal(asked(), retry);
      await fixture.clock.advance(7_000);
    }
    await call;
    assert.equal(asked(), 4);
  });

  it('send checks before each attempt whether it may still send', async () => {
    const { listener, asked } = inTurn({ status: 429, retryAfter: '0' });
    await using fixture = await anHttpFixture(listener, { clock: systemClock });
    let left = 2;
    const before = (): void => {
      left -= 1;
      if (left < 0) throw new TemperError('TEMPER_NOT_LEADER', 'no longer');
    };
    const call = fixture.transport.send({ ...POST, beforeAttempt: before }, signal());
    await assert.rejects(call, (error) => isTemperError(error, 'TEMPER_NOT_LEADER'));
    assert.equal(asked(), 2);
  });

  it('a GET is retried after a 503, and a POST is not', async () => {
    const reading = inTurn({ status: 503, retryAfter: '0' }, { status: 200 });
    const writing = inTurn({ status: 503, retryAfter: '0' });
    await using first = await anHttpFixture(reading.listener, { clock: systemClock });
    assert.deepEqual(await first.transport.send(GET, signal()), {});
    await using second = await anHttpFixture(writing.listener, { clock: systemClock });
    await assert.rejects(second.transport.send(POST, signal()), { status: 503 });
    assert.equal(writing.asked(), 1);
  });

  it('send does not retry without a valid or with a long Retry-After', async () => {
    for (const retryAfter of [undefined, '3600', 'Fri, 31 Dec 1999 23:59:59 GMT']) {
      const { listener, asked } = inTurn({ status: 429, ...(retryAfter === undefined ? {} : { retryAfter }) });
      await using fixture = await anHttpFixture(listener);
      await assert.rejects(fixture.transport.send(GET, signal()), { status: 429 });
      assert.equal(asked(), 1);
    }
  });

  it('send refreshes the credentials once after a 401', async () => {
    const { listener, asked } = inTurn({ status: 401 }, { status: 200 }, { status: 401 });
    await using fixture = await anHttpFixture(listener);
    assert.deepEqual(await fixture.transport.send(POST, signal()), {});
    assert.equal(fixture.access.refreshed, 1);
    await assert.rejects(fixture.transport.send(POST, signal()), { status: 401 });
    assert.equal(asked(), 4);
  });

  it('a call without a response times out, and the next call opens a new connection', async () => {
    let connections = 0;
    let silent = true;
    const server = createServer((_request, response) => void (silent ? undefined : response.end('{}')));
    server.on('connection', () => (connections += 1));
    await using fixture = await aFixture(server, 'http', { timeoutMs: 1_000 });
    await assert.rejects(fixture.transport.send(GET, signal()), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
    await assert.rejects(fixture.transport.open(GET, signal()), (error) => isTemperError(error, 'TEMPER_TIMEOUT'));
    silent = false;
    assert.deepEqual(await fixture.transport.send(GET, signal()), {});
    assert.equal(connections, 3);
    assert.equal(fixture.metrics.counts['rest_client_requests_total{<error>}'], 2);
  });

  it('calls for the Lease use a connection of their own, which is replaced when the caller gives up waiting', async () => {
    const paths: string[][] = [];
    const sessions = new Map<unknown, string[]>();
    // Over HTTP/2 an aborted call ends its stream and leaves the connection, which may be dead.
    const server = createSecureServer(PEM, (request, response) => {
      const { session } = request.stream;
      const seen = sessions.get(session) ?? [];
      if (seen.length === 0) paths.push(seen);
      sessions.set(session, seen);
      seen.push(request.url);
      if (request.url !== '/silent') response.end('{}');
    });
    await using fixture = await aFixture(server, 'https', { clock: systemClock });
    const lease = (path: string, until = signal()) =>
      fixture.transport.send({ method: 'GET', path, connection: 'lease' }, until);
    await fixture.transport.send(GET, signal());
    await lease('/lease');
    const limited = AbortSignal.any([signal(), AbortSignal.timeout(20)]);
    await assert.rejects(lease('/silent', limited), { name: 'TimeoutError' });
    await lease('/lease');
    await fixture.transport.send(GET, signal());
    assert.deepEqual(
      paths.map((seen) => seen.filter((path) => path !== '/silent')),
      [[GET.path, GET.path], ['/lease'], ['/lease']],
    );
  });

  it('an aborted call rejects with the reason of its signal, before and after it is sent', async () => {
    await using fixture = await anHttpFixture(() => {});
    const controller = new AbortController();
    const call = fixture.transport.send(GET, controller.signal);
    controller.abort(new Error('cancelled by the caller'));
    await assert.rejects(call, /cancelled by the caller/);
    await assert.rejects(fixture.transport.send(GET, controller.signal), /cancelled by the caller/);
  });

  it('a started stream has no timeout', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const started = Promise.withResolvers<ServerResponse>();
    await using fixture = await anHttpFixture((_request, response) => {
      response.write('a');
      started.resolve(response);
    });
    const stream = await fixture.transport.open(GET, signal());
    context.mock.timers.tick(3_600_000);
    (await started.promise).end('b');
    const chunks: string[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk).toString());
    assert.equal(chunks.join(''), 'ab');
  });

  it('an endless response, an invalid response and an unreachable server are errors', async () => {
    await using endless = await anHttpFixture((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(1024 * 1024, 0x20)));
      };
      response.on('drain', more);
      more();
    });
    const unreadable = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_UNREACHABLE');
    const tooLarge = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_RESPONSE_TOO_LARGE');
    await assert.rejects(endless.transport.send(GET, signal()), tooLarge);
    await using html = await anHttpFixture(inTurn({ status: 200, body: '<html>' }).listener);
    await assert.rejects(html.transport.send(GET, signal()), unreadable);
    const server = createServer();
    const fixture = await aFixture(server, 'http');
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(fixture.transport.send(GET, signal()), unreadable);
    await fixture.transport[Symbol.asyncDispose]();
  });

  for (const how of ['the transport is disposed', 'the connection is lost'] as const) {
    it(`responses to aborted watches cause no unhandled error when ${how}`, { timeout: 300_000 }, async () => {
      const sockets: Socket[] = [];
      const sending = new Set<object>();
      const server = createSecureServer({ ...PEM, allowHTTP1: true }, (_request, response) => {
        sending.add(response);
        response.on('close', () => sending.delete(response));
        response.writeHead(200);
        response.write('{"type":"BOOKMARK"}\n');
      });
      server.on('secureConnection', (socket: Socket) => sockets.push(socket));
      await using fixture = await aFixture(server, 'https', { clock: systemClock });
      const { transport } = fixture;
      const watch = { method: 'GET', path: '/watch' } as const;
      await transport.open(watch, signal());
      // Aborts a request after each of the microtasks in which it is created, written and reported.
      for (let steps = 0; steps < 40; steps += 1) {
        const controller = new AbortController();
        const aborted = assert.rejects(transport.open(watch, controller.signal), { name: 'AbortError' });
        for (let step = 0; step < steps; step += 1) await Promise.resolve();
        controller.abort();
        await aborted;
      }
      // The server responds in the order of the requests.
      const last = await transport.open(watch, signal());
      assert.equal(sockets.length, 1);
      while (sending.size > 2) await new Promise((resolve) => setImmediate(resolve));
      if (how === 'the transport is disposed') await transport[Symbol.asyncDispose]();
      else for (const socket of sockets) socket.destroy();
      // An error event without a listener would crash the process; the test runner reports it.
      await assert.rejects(async () => {
        for await (const _chunk of last);
      });
      await new Promise((resolve) => setImmediate(resolve));
    });
  }

  it('a disposed transport rejects calls', async () => {
    const { listener, asked } = inTurn({ status: 200 });
    await using fixture = await anHttpFixture(listener);
    await fixture.transport.send(GET, signal());
    await fixture.transport[Symbol.asyncDispose]();
    await assert.rejects(fixture.transport.send(GET, signal()), (error) =>
      isTemperError(error, 'TEMPER_KUBE_UNREACHABLE'),
    );
    assert.equal(asked(), 1);
  });
});
