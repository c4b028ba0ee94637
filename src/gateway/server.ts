import fastifySwagger from '@fastify/swagger';
import fastifyUnderPressure from '@fastify/under-pressure';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import fastify, { type FastifyReply } from 'fastify';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type Json, jsonDepth } from '../lib/json.ts';
import { authenticate, readIdempotencyKey, requireAccess } from './access.ts';
import { Calls } from './calls.ts';
import type { GatewayDeps } from './deps.ts';
import { observeCalls } from './observe-calls.ts';
import { OPENAPI_PATH, openApiOptions } from './openapi.ts';
import { type Refusal, refusal, refusalOf } from './refusals.ts';
import type { GatewayServer, RouteModule } from './routes.ts';
import { Refused } from './schemas.ts';
import { type ShareOptions, Shares } from './shares.ts';

const BODY_LIMIT = 1024 * 1024;
/** Levels of a body. */
const DEEPEST = 100;
/** An event loop that is this late is not to be given more. */
const BUSY_MILLISECONDS = 1_500;
const CORRELATION_HEADER = 'correlation-id';
const CORRELATION_FORM = /^[A-Za-z0-9_.-]{8,64}$/;

export interface ServerOptions {
  /** PEM texts; absent, no handshake succeeds until a context is set. */
  tls: { cert: string; key: string } | undefined;
  routes: readonly RouteModule[];
  shares?: ShareOptions;
}

/** The server with its routes, not listening yet. Who adds a route says who may call it, or this throws. */
export async function createGatewayServer(deps: GatewayDeps, options: ServerOptions): Promise<GatewayServer> {
  const server: GatewayServer = fastify({
    https: { ...options.tls, minVersion: 'TLSv1.3' },
    bodyLimit: BODY_LIMIT,
    exposeHeadRoutes: false,
    trustProxy: false,
    requestIdHeader: false,
    genReqId: (request) => correlationId(request.headers[CORRELATION_HEADER], deps),
    routerOptions: { maxParamLength: 256 },
    requestTimeout: 60_000,
    keepAliveTimeout: 75_000,
    // A draining server answers as every refusal does; see the first hook.
    return503OnClosing: false,
  }).withTypeProvider<TypeBoxTypeProvider>();
  server.setValidatorCompiler(TypeBoxValidatorCompiler);
  const calls = new Calls();
  calls.decorate(server);
  addFirstHook(server, deps, calls);
  await server.register(fastifyUnderPressure, {
    maxEventLoopDelay: BUSY_MILLISECONDS,
    exposeStatusRoute: false,
    pressureHandler: async () => {
      throw new TemperError('TEMPER_OVERLOADED', 'the gateway has more to do than it can', { retry: 2_000 });
    },
  });
  addHooks(server, deps, calls, new Shares(deps.clock, options.shares));
  server.setErrorHandler((error, request, reply) => {
    const found = refusalOf(error);
    if (found.status >= 500 && !isTemperError(error, 'TEMPER_OVERLOADED')) {
      deps.log.error({ correlation: request.id, ...request.about, error }, 'a call failed');
    }
    return refuse(reply, found, deps);
  });
  server.setNotFoundHandler((_request, reply) =>
    refuse(reply, refusal('TEMPER_NOT_FOUND', 'there is no such route; see /v1/openapi.json'), deps),
  );
  server.addSchema(Refused);
  await server.register(fastifySwagger, openApiOptions());
  let document = '';
  server.get(OPENAPI_PATH, { config: { access: 'anyone' }, schema: { hide: true } }, async (_request, reply) => {
    document ||= JSON.stringify(server.swagger());
    return reply.type('application/json').send(document);
  });
  for (const add of options.routes) add(server, deps);
  return server;
}

function correlationId(given: string | string[] | undefined, deps: GatewayDeps): string {
  return typeof given === 'string' && CORRELATION_FORM.test(given) ? given : deps.ids.next('call');
}

function addFirstHook(server: GatewayServer, deps: GatewayDeps, calls: Calls): void {
  server.addHook('onRequest', async (request, reply) => {
    void reply.header(CORRELATION_HEADER, request.id);
    calls.begin(request, reply);
    if (!deps.draining.aborted) return;
    void reply.header('connection', 'close');
    throw new TemperError('TEMPER_OVERLOADED', 'this gateway is about to end; another one answers', { retry: 500 });
  });
}

function addHooks(server: GatewayServer, deps: GatewayDeps, calls: Calls, shares: Shares): void {
  server.addHook('onRoute', ({ method, url, config }) => requireAccess(method, url, config?.access));
  server.addHook('onRequest', async (request, reply) => {
    const call = calls.of(request);
    // The handler of unknown routes has no access to ask about.
    if (request.is404) return;
    await authenticate(request, call, deps.identity);
    shares.take(call, request.routeOptions.config.longPoll === true, reply);
    readIdempotencyKey(request, call);
  });
  server.addHook('preValidation', async ({ body }) => {
    // Whoever writes what is nested like that wants a stack to overflow.
    if (jsonDepth((body ?? null) as Json, DEEPEST + 1) <= DEEPEST) return;
    throw new TemperError('TEMPER_REQUEST_INVALID', `the body is nested deeper than ${DEEPEST} levels`);
  });
  observeCalls(server, deps, calls);
}

function refuse(reply: FastifyReply, { status, body }: Refusal, { metrics }: GatewayDeps): FastifyReply {
  const { code, retryAfterMilliseconds } = body.error;
  metrics.count('temper_door_refusals_total', { code });
  if (retryAfterMilliseconds !== undefined) {
    void reply.header('retry-after', Math.max(1, Math.ceil(retryAfterMilliseconds / 1_000)));
  }
  return reply.code(status).type('application/json').send(body);
}
