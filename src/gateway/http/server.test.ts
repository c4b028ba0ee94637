import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, describe, it } from 'node:test';
import { pollValue } from '../../../test/support/poll.ts';
import { Type } from 'typebox';
import type { Authenticator } from '../../identity/types.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { ErrorBody } from '../../gateway-api/pod-api.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';
import type { GatewayDeps } from '../deps.ts';
import { drain } from './drain.ts';
import { POD } from './pod.testing.ts';
import type { GatewayServer, RouteModule } from './routes.ts';
import { createGatewayServer, type GatewayServerOptions } from './server.ts';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);

const identity: Authenticator = {
  pod: async (token) => {
    if (token !== 'good') throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
    return POD;
  },
  podOrWarm: async () => POD,
  boundIdentity: () => POD,
  isVerified: () => false,
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
  peer: async (token) => ({ kind: 'peer', namespace: token, account: 'planner' }),
  user: async (token) => ({ kind: 'user', namespace: token, tokenId: 't-1' }),
};

const lines: string[] = [];
const log = createLogger({
  level: 'info',
  destination: { write: (line: string) => lines.push(line) },
  secrets: createSecretRedactor(),
});

interface TestResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** Started calls of `/slow`, and the promise they wait for. */
const slow = { started: 0, release: Promise.withResolvers<void>() };

async function whenStarted(count: number): Promise<void> {
  await pollValue(
    `${count} started calls`,
    () => slow.started,
    (started) => started >= count,
    { intervalMs: 5 },
  );
}

const routes: RouteModule = (server) => {
  const Body = Type.Object({ name: Type.String() }, { additionalProperties: false });
  server.post('/echo', { config: { access: 'pod' }, schema: { body: Body } }, async ({ body, pod }) => ({
    name: body.name,
    agent: pod.agent,
  }));
  server.post('/small', { config: { access: 'pod' }, bodyLimit: 64 }, async () => ({}));
  server.post('/keyed', { config: { access: 'pod', idempotent: true } }, async ({ idempotencyKey }) => ({
    idempotencyKey,
  }));
  server.get('/defect', { config: { access: 'anyone' } }, async () => {
    throw new Error('internal-secret');
  });
  const message = 'the counters are unavailable';
  server.get('/transient', { config: { access: 'anyone' } }, async () => {
    throw new TemperError('TEMPER_LEDGER_UNAVAILABLE', message, { retry: 'backoff' });
  });
  server.get('/permanent', { config: { access: 'anyone' } }, async () => {
    throw new TemperError('TEMPER_LEDGER_UNAVAILABLE', message);
  });
  server.get('/unauthenticated', { config: { access: 'anyone' } }, async ({ pod }) => pod);
  server.get('/slow', { config: { access: 'pod' } }, async () => {
    slow.started += 1;
    await slow.release.promise;
    return { ended: true };
  });
  server.get('/users/:namespace', { config: { access: 'user' } }, async ({ user }) => user);
};

function newMetrics() {
  return registerMetrics(createRegistry(), GATEWAY_METRICS);
}

describe('the server of the gateway', () => {
  let certificate: { cert: string; key: string };
  let server: GatewayServer;
  let port: number;
  let draining: AbortController;

  before(async () => {
    const [cert, key] = await Promise.all(
      ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
    );
    certificate = { cert: cert ?? '', key: key ?? '' };
  });

  async function start(rateLimits?: GatewayServerOptions['rateLimits']): Promise<void> {
    draining = new AbortController();
    slow.started = 0;
    slow.release = Promise.withResolvers<void>();
    const deps = {
      clock: systemClock,
      ids: ulids,
      log,
      metrics: newMetrics(),
      identity,
      draining: draining.signal,
    } as GatewayDeps;
    const options: GatewayServerOptions = { tls: certificate, routes: [routes] };
    if (rateLimits !== undefined) options.rateLimits = rateLimits;
    server = await createGatewayServer(deps, options);
    await server.listen({ host: '127.0.0.1', port: 0 });
    ({ port } = server.server.address() as AddressInfo);
  }

  afterEach(async () => {
    server.server.closeAllConnections();
    await server.close();
  });
  after(() => assert.ok(lines.length > 0));

  function call(
    method: string,
    path: string,
    options: { headers?: object; body?: string } = {},
  ): Promise<TestResponse> {
    const headers = { authorization: 'Bearer good', 'content-type': 'application/json', ...options.headers };
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          path,
          method,
          headers,
          ca: certificate.cert,
          checkServerIdentity: () => undefined,
          agent: false,
        },
        (response) => {
          text(response).then(
            (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text: body }),
            reject,
          );
        },
      );
      sent.on('error', reject);
      sent.end(options.body);
    });
  }

  function refused({ status, text: body }: TestResponse, expected: number, code: ErrorCode): ErrorBody['error'] {
    const { error } = JSON.parse(body) as ErrorBody;
    assert.deepEqual([status, error.code], [expected, code], body);
    assert.deepEqual(Object.keys(JSON.parse(body)), ['error']);
    return error;
  }

  it('the server authenticates the caller and passes its identity to the route', async () => {
    await start();
    const answer = await call('POST', '/echo', { body: '{"name":"x"}' });
    assert.deepEqual([answer.status, JSON.parse(answer.text)], [200, { name: 'x', agent: 'scout' }]);
  });

  it('every error response has the same form', async () => {
    await start();
    refused(await call('GET', '/nowhere'), 404, 'TEMPER_NOT_FOUND');
    refused(await call('POST', '/echo', { body: '{"name":' }), 400, 'TEMPER_REQUEST_INVALID');
    const extra = refused(
      await call('POST', '/echo', { body: '{"name":"x","more":1}' }),
      400,
      'TEMPER_REQUEST_INVALID',
    );
    assert.match(extra.message, /^body/);
    const kind = refused(await call('POST', '/echo', { body: '{"name":["sesame"]}' }), 400, 'TEMPER_REQUEST_INVALID');
    assert.match(kind.message, /^body\.name /);
    assert.ok(!kind.message.includes('sesame'));
    refused(await call('POST', '/echo', { body: '{"__proto__":{"a":1},"name":"x"}' }), 400, 'TEMPER_REQUEST_INVALID');
    refused(
      await call('POST', '/echo', { headers: { 'content-type': 'text/xml' }, body: '<a/>' }),
      415,
      'TEMPER_REQUEST_INVALID',
    );
    refused(
      await call('POST', '/small', { body: JSON.stringify({ a: 'x'.repeat(100) }) }),
      413,
      'TEMPER_REQUEST_TOO_LARGE',
    );
    refused(
      await call('POST', '/echo', { body: JSON.stringify({ name: 'x'.repeat(1_100_000) }) }),
      413,
      'TEMPER_REQUEST_TOO_LARGE',
    );
  });

  it('a retryable error maps to 503 and a permanent one to 422', async () => {
    await start();
    refused(await call('GET', '/transient'), 503, 'TEMPER_LEDGER_UNAVAILABLE');
    refused(await call('GET', '/permanent'), 422, 'TEMPER_LEDGER_UNAVAILABLE');
  });

  it('an internal error appears in the log only, not in the response', async () => {
    await start();
    const answer = await call('GET', '/defect');
    refused(answer, 500, 'TEMPER_INTERNAL');
    assert.ok(!answer.text.includes('internal-secret'));
    assert.ok(
      lines.some((line) => line.includes('internal-secret') && line.includes(String(answer.headers['correlation-id']))),
    );
    refused(await call('GET', '/unauthenticated'), 500, 'TEMPER_INTERNAL');
  });

  it('the server refuses callers without a token, with an invalid one, or with one of another namespace', async () => {
    await start();
    const body = '{"name":"x"}';
    refused(await call('POST', '/echo', { headers: { authorization: '' }, body }), 401, 'TEMPER_TOKEN_INVALID');
    refused(
      await call('POST', '/echo', { headers: { authorization: 'Basic good' }, body }),
      401,
      'TEMPER_TOKEN_INVALID',
    );
    refused(
      await call('POST', '/echo', { headers: { authorization: 'Bearer bad' }, body }),
      401,
      'TEMPER_TOKEN_INVALID',
    );
    refused(await call('GET', '/users/team-a'), 401, 'TEMPER_TOKEN_INVALID');
    refused(await call('GET', '/users/team-b', { headers: { 'temper-token': 'team-a' } }), 403, 'TEMPER_POLICY_DENIED');
    assert.equal((await call('GET', '/users/team-a', { headers: { 'temper-token': 'team-a' } })).status, 200);
  });

  it('creating the server throws for a route without config.access', async () => {
    await start();
    const deps = {
      clock: systemClock,
      ids: ulids,
      log,
      metrics: newMetrics(),
      identity,
      draining: draining.signal,
    } as GatewayDeps;
    const open: RouteModule = (target) => void target.get('/open', async () => ({}));
    await assert.rejects(createGatewayServer(deps, { tls: certificate, routes: [open] }), RangeError);
  });

  it('the server requires an idempotency key where the route does', async () => {
    await start();
    const body = '{}';
    refused(await call('POST', '/keyed', { body }), 400, 'TEMPER_REQUEST_INVALID');
    for (const key of ['a b', 'x'.repeat(129)]) {
      refused(
        await call('POST', '/keyed', { headers: { 'idempotency-key': key }, body }),
        400,
        'TEMPER_REQUEST_INVALID',
      );
    }
    const answer = await call('POST', '/keyed', { headers: { 'idempotency-key': 'k-1' }, body });
    assert.equal(answer.text, '{"idempotencyKey":"k-1"}');
  });

  it('the server limits rate and concurrency per agent', async () => {
    const limits = { perSecond: 0.001, burst: 3, inFlight: 2, longPolls: 1 };
    await start({ pod: limits, users: limits });
    const calls = [call('GET', '/slow'), call('GET', '/slow')];
    await whenStarted(2);
    refused(await call('GET', '/slow'), 429, 'TEMPER_RATE_LIMITED');
    slow.release.resolve();
    assert.deepEqual(
      (await Promise.all(calls)).map(({ status }) => status),
      [200, 200],
    );
    assert.equal((await call('POST', '/echo', { body: '{"name":"x"}' })).status, 200);
    const limited = await call('POST', '/echo', { body: '{"name":"x"}' });
    const { retryAfterMs } = refused(limited, 429, 'TEMPER_RATE_LIMITED');
    assert.equal(retryAfterMs, 1_000_000);
    assert.equal(limited.headers['retry-after'], '1000');
    assert.equal((await call('GET', '/users/team-a', { headers: { 'temper-token': 'team-a' } })).status, 200);
  });

  it('the server accepts a valid correlation id, and logs it with route and agent but without content', async () => {
    await start();
    const headers = { 'correlation-id': 'trace-me-please' };
    const answer = await call('POST', '/echo?q=sesame', { headers, body: '{"name":"open-sesame"}' });
    assert.equal(answer.headers['correlation-id'], 'trace-me-please');
    const line = lines.findLast((one) => one.includes('trace-me-please')) ?? '';
    const { route, agent, status } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual([route, agent, status], ['/echo', 'scout', 200]);
    assert.ok(!lines.join('').includes('sesame'));
    const other = await call('GET', '/nowhere', { headers: { 'correlation-id': 'no good"' } });
    assert.match(String(other.headers['correlation-id']), /^call-[a-z0-9]{26}$/);
  });

  it('a draining server finishes requests in progress and refuses new connections', async () => {
    await start();
    const answer = call('GET', '/slow');
    await whenStarted(1);
    const drained = drain(server, draining, systemClock);
    await assert.rejects(call('GET', '/slow'), { code: 'ECONNREFUSED' });
    slow.release.resolve();
    await drained;
    assert.deepEqual([(await answer).status, (await answer).text], [200, '{"ended":true}']);
  });

  it('a draining server closes requests that exceed the drain timeout', async () => {
    await start();
    const cut = assert.rejects(call('GET', '/slow'));
    await whenStarted(1);
    await drain(server, draining, systemClock, 20);
    await cut;
  });

  it('the server publishes an OpenAPI document of its routes', async () => {
    await start();
    const { paths } = JSON.parse((await call('GET', '/v1/openapi.json')).text) as { paths: object };
    assert.ok('/echo' in paths);
  });
});
