import fastifySwagger from '@fastify/swagger';
import fastifyUnderPressure from '@fastify/under-pressure';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import fastify, { type FastifyReply } from 'fastify';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type Json, jsonDepth } from '../../lib/json.ts';
import { ErrorBody } from '../../gateway-api/error-schema.ts';
import { ModelStreamLine } from '../../gateway-api/model-schemas.ts';
import { SessionStreamLine } from '../../gateway-api/user-schemas.ts';
import { authenticate, readIdempotencyKey, assertRouteAccess } from './authentication.ts';
import { RequestContexts } from './request-context.ts';
import type { GatewayDeps } from '../deps.ts';
import { instrumentRequests } from './instrumented-requests.ts';
import { OPENAPI_PATH, openApiOptions } from './openapi.ts';
import { type ErrorResponse, errorResponse, errorResponseOf } from './error-responses.ts';
import type { GatewayServer, RouteModule } from './routes.ts';
import { type CallerLimitOptions, CallerRateLimits } from './rate-limits.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** Nesting depth of a body. */
const MAX_BODY_DEPTH = 100;
/** Event loop delay in milliseconds beyond which requests are refused. */
const MAX_EVENT_LOOP_DELAY_MS = 1_500;
const CORRELATION_HEADER = 'correlation-id';
const CORRELATION_ID = /^[A-Za-z0-9_.-]{8,64}$/;

export interface GatewayServerOptions {
  /** PEM texts. Undefined: no TLS handshake succeeds until a secure context is set. */
  tls: { cert: string; key: string } | undefined;
  routes: readonly RouteModule[];
  rateLimits?: CallerLimitOptions;
}

/** The server with its routes, not listening yet. Throws for a route without `config.access`. */
export async function createGatewayServer(deps: GatewayDeps, options: GatewayServerOptions): Promise<GatewayServer> {
  const server: GatewayServer = fastify({
    https: { ...options.tls, minVersion: 'TLSv1.3' },
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    trustProxy: false,
    requestIdHeader: false,
    genReqId: (request) => correlationId(request.headers[CORRELATION_HEADER], deps),
    routerOptions: { maxParamLength: 256 },
    requestTimeout: 60_000,
    keepAliveTimeout: 75_000,
    // A draining server responds with the common error form; see `addFirstHook`.
    return503OnClosing: false,
  }).withTypeProvider<TypeBoxTypeProvider>();
  server.setValidatorCompiler(TypeBoxValidatorCompiler);
  // The type checker holds handlers to the schemas of their responses; the schemas drop no member at run time.
  server.setSerializerCompiler(() => (body) => JSON.stringify(body));
  const contexts = new RequestContexts();
  contexts.decorate(server);
  addFirstHook(server, deps, contexts);
  await server.register(fastifyUnderPressure, {
    maxEventLoopDelay: MAX_EVENT_LOOP_DELAY_MS,
    exposeStatusRoute: false,
    pressureHandler: async () => {
      throw new TemperError('TEMPER_OVERLOADED', 'the gateway is overloaded', { retry: 2_000 });
    },
  });
  addHooks(server, deps, contexts, new CallerRateLimits(deps.clock, options.rateLimits));
  server.setErrorHandler((error, request, reply) => {
    const response = errorResponseOf(error);
    if (response.status >= 500 && !isTemperError(error, 'TEMPER_OVERLOADED')) {
      deps.log.error({ correlation: request.id, ...request.logFields, error }, 'a request failed');
    }
    return sendError(reply, response, deps);
  });
  server.setNotFoundHandler((_request, reply) =>
    sendError(reply, errorResponse('TEMPER_NOT_FOUND', 'there is no such route; see /v1/openapi.json'), deps),
  );
  server.addSchema(ErrorBody);
  server.addSchema(ModelStreamLine);
  server.addSchema(SessionStreamLine);
  await server.register(fastifySwagger, openApiOptions());
  let document = '';
  server.get(OPENAPI_PATH, { config: { access: 'anyone' }, schema: { hide: true } }, async (_request, reply) => {
    document ||= JSON.stringify(server.swagger());
    return reply.type('application/json').send(document);
  });
  for (const add of options.routes) add(server, deps);
  return server;
}

function correlationId(header: string | string[] | undefined, deps: GatewayDeps): string {
  return typeof header === 'string' && CORRELATION_ID.test(header) ? header : deps.ids.next('call');
}

function addFirstHook(server: GatewayServer, deps: GatewayDeps, contexts: RequestContexts): void {
  server.addHook('onRequest', async (request, reply) => {
    void reply.header(CORRELATION_HEADER, request.id);
    contexts.create(request, reply);
    if (!deps.draining.aborted) return;
    void reply.header('connection', 'close');
    throw new TemperError('TEMPER_OVERLOADED', 'this gateway is shutting down; retry to reach another replica', {
      retry: 500,
    });
  });
}

function addHooks(
  server: GatewayServer,
  deps: GatewayDeps,
  contexts: RequestContexts,
  rateLimits: CallerRateLimits,
): void {
  server.addHook('onRoute', ({ method, url, config }) => assertRouteAccess(method, url, config?.access));
  server.addHook('onRequest', async (request, reply) => {
    const context = contexts.of(request);
    // The not-found handler has no `config.access`.
    if (request.is404) return;
    await authenticate(request, context, deps.identity);
    rateLimits.acquire(context, request.routeOptions.config.longPoll === true, reply);
    readIdempotencyKey(request, context);
  });
  server.addHook('preValidation', async ({ body }) => {
    // Deeper nesting is an attempt to overflow the stack.
    if (jsonDepth((body ?? null) as Json, MAX_BODY_DEPTH + 1) <= MAX_BODY_DEPTH) return;
    throw new TemperError('TEMPER_REQUEST_INVALID', `the body is nested deeper than ${MAX_BODY_DEPTH} levels`);
  });
  instrumentRequests(server, deps, contexts);
}

function sendError(reply: FastifyReply, { status, body }: ErrorResponse, { metrics }: GatewayDeps): FastifyReply {
  const { code, retryAfterMs } = body.error;
  metrics.count('temper_http_errors_total', { code });
  if (retryAfterMs !== undefined) {
    void reply.header('retry-after', Math.max(1, Math.ceil(retryAfterMs / 1_000)));
  }
  return reply.code(status).type('application/json').send(body);
}
