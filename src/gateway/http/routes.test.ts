import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Authenticator } from '../../identity/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { ErrorBody } from '../../gateway-api/pod-api.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { GatewayDeps } from '../deps.ts';
import { memoryRoutes } from '../pods/memory.ts';
import { egressRoutes } from '../egress/routes.ts';
import { modelRoutes } from '../models/routes.ts';
import { CORE_ROUTES } from '../routes.ts';
import { reviewRoutes } from '../review/routes.ts';
import type { RouteAccess, GatewayServer } from './routes.ts';
import { createGatewayServer } from './server.ts';
import { sessionRoutes } from '../pods/sessions.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';

interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  url: string;
  access: RouteAccess;
  /** Schemas. */
  body?: unknown;
  query?: unknown;
}

/** A union is closed when each of its members is. */
function isClosed(schema: unknown): boolean {
  const { anyOf, additionalProperties } = schema as { anyOf?: unknown[]; additionalProperties?: unknown };
  return anyOf === undefined ? additionalProperties === false : anyOf.every(isClosed);
}

const greedy = { agent: 'greedy', agentUid: 'a-1', podUid: 'pod-1' };
const hostile = { agent: 'hostile', agentUid: 'a-3', podUid: 'pod-3' };
const modest = { agent: 'modest', agentUid: 'a-2', podUid: 'pod-2' };

function podOf(token: string) {
  const pod = [greedy, modest, hostile].find(({ agent }) => agent === token);
  if (pod === undefined) throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
  return { kind: 'pod', namespace: 'team-a', podName: 'p', ...pod } as const;
}

const identity: Authenticator = {
  pod: async (token) => podOf(token),
  podOrWarm: async (token) => podOf(token),
  boundIdentity: () => undefined,
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
  user: async (token) => {
    if (token !== 'user') throw new TemperError('TEMPER_TOKEN_INVALID', 'the token is invalid');
    return { kind: 'user', namespace: 'team-a', tokenId: 't-1' };
  },
};

describe('every route of the gateway', () => {
  const routes: Route[] = [];
  const lines: string[] = [];
  let server: GatewayServer;

  before(async () => {
    const log = createLogger({
      level: 'debug',
      destination: { write: (line: string) => lines.push(line) },
      secrets: createSecretRedactor(),
    });
    const metrics = registerMetrics(createRegistry(), GATEWAY_METRICS);
    const known = { clock: systemClock, ids: ulids, log, metrics, identity, draining: NEVER_ABORTED };
    const deps = known as unknown as GatewayDeps;
    const limits = { perSecond: 0.001, burst: 1, inFlight: 4, longPolls: 4 };
    server = await createGatewayServer(deps, {
      tls: undefined,
      rateLimits: { pod: limits, users: { ...limits, burst: 1_000 } },
      routes: [
        (adding) =>
          void adding.addHook('onRoute', ({ method, url, config, schema }) => {
            if (config?.access === undefined || Array.isArray(method)) return;
            const { body, querystring: query } = schema ?? {};
            routes.push({ method: method as Route['method'], url, access: config.access, body, query });
          }),
        ...CORE_ROUTES,
        modelRoutes({} as Parameters<typeof modelRoutes>[0]),
        reviewRoutes({} as Parameters<typeof reviewRoutes>[0]),
        sessionRoutes({} as Parameters<typeof sessionRoutes>[0]),
        egressRoutes({} as Parameters<typeof egressRoutes>[0]),
        memoryRoutes({} as Parameters<typeof memoryRoutes>[0]),
        (adding) => adding.get('/modest', { config: { access: 'pod' } }, async () => ({ served: true })),
      ],
    });
    await server.ready();
  });
  after(() => server.close());

  const of = (...access: RouteAccess[]): Route[] => {
    const found = routes.filter((route) => access.includes(route.access));
    assert.ok(found.length > 7, `only ${found.length} routes for ${access.join()}`);
    return found;
  };

  async function errorOf({ method, url }: Route, headers: Record<string, string>, body?: string) {
    const path = url.replace(':namespace', 'team-a').replaceAll(/:[a-z]+/g, 'x1');
    const key = { 'idempotency-key': 'k', 'content-type': 'application/json' };
    const payload = method === 'GET' || method === 'DELETE' ? {} : { payload: body ?? '{}' };
    const response = await server.inject({ method, url: path, headers: { ...key, ...headers }, ...payload });
    const { error } = response.json<ErrorBody>();
    return { status: response.statusCode, code: error.code, retryAfter: response.headers['retry-after'] };
  }

  it('each route refuses tokens of the other kind of caller', async () => {
    for (const route of of('pod', 'warm-pod')) {
      for (const headers of [{ 'temper-token': 'user' }, { authorization: 'Bearer user' }]) {
        assert.equal((await errorOf(route, headers)).status, 401, route.url);
      }
    }
    const egress = routes.filter(({ access }) => access === 'egress');
    assert.equal(egress.length, 2);
    for (const route of egress) {
      for (const headers of [{ authorization: 'Bearer modest' }, { 'temper-token': 'user' }]) {
        assert.equal((await errorOf(route, headers)).status, 401, route.url);
      }
    }
    for (const route of of('user')) {
      for (const headers of [{ authorization: 'Bearer modest' }, { 'temper-token': 'modest' }]) {
        assert.equal((await errorOf(route, headers)).status, 401, route.url);
      }
    }
  });

  it('each route refuses an agent beyond its rate limit with Retry-After, and serves the other agents', async () => {
    const headers = { authorization: 'Bearer greedy' };
    assert.equal((await server.inject({ method: 'GET', url: '/modest', headers })).statusCode, 200);
    for (const route of of('pod', 'warm-pod')) {
      const { status, code, retryAfter } = await errorOf(route, headers);
      assert.deepEqual([status, code, retryAfter], [429, 'TEMPER_RATE_LIMITED', '1000'], route.url);
    }
    const served = await server.inject({ method: 'GET', url: '/modest', headers: { authorization: 'Bearer modest' } });
    assert.deepEqual([served.statusCode, served.json()], [200, { served: true }]);
  });

  it('no route accepts an unknown member of a body or a query', () => {
    // The forms of A2A are those of its protocol, which has more than the gateway uses.
    const own = routes.filter(({ access }) => access !== 'peer');
    const open = own.flatMap(({ url, method, body, query }) =>
      [body, query].every((schema) => schema === undefined || isClosed(schema)) ? [] : [`${method} ${url}`],
    );
    assert.deepEqual(open, []);
    assert.ok(routes.filter(({ body }) => body !== undefined).length > 7);
  });

  it('a route refuses a body nested deeply enough to overflow a stack, and does not log it', async () => {
    const nested = `${'['.repeat(50_000)}"the-secret"${']'.repeat(50_000)}`;
    const record = `{"action":"a","actor":"b","evidence":"claimed","subject":"c","facts":{"n":${nested}}}`;
    const reports: Route = { method: 'POST', url: '/v1/reports', access: 'pod' };
    const { status, code } = await errorOf(reports, { authorization: 'Bearer hostile' }, `{"audit":[${record}]}`);
    assert.deepEqual([status, code], [400, 'TEMPER_REQUEST_INVALID']);
    assert.ok(!lines.join('').includes('the-secret'));
  });
});
