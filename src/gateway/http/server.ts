import fastifySwagger from '@fastify/swagger';
import fastifyUnderPressure from '@fastify/under-pressure';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RouteHandlerMethod,
} from 'fastify';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { ErrorBody } from '../../gateway-api/error-schema.ts';
import { ModelStreamLine } from '../../gateway-api/model-schemas.ts';
import { SessionStreamLine } from '../../gateway-api/user-schemas.ts';
import { authenticate, readIdempotencyKey, assertRouteAccess } from './authentication.ts';
import { addJsonBodies, type CountBytes } from './body/json-body.ts';
import { addPartsBodies } from './body/parts-body.ts';
import { compileValidator } from './body/validation.ts';
import { callerOf } from './limits/caller.ts';
import { BodyByteLimits, type ByteLimitOptions } from './limits/byte-limits.ts';
import { CONNECTION_TIMEOUTS, ConnectionLimits, type ConnectionLimitOptions } from '../../net/connection-limits.ts';
import { InvalidTokenLimits, type InvalidTokenLimitOptions } from './limits/invalid-tokens.ts';
import { LargeResponses, type LargeResponseOptions } from './limits/large-responses.ts';
import { type CallerLimitOptions, CallerRateLimits } from './limits/rate-limits.ts';
import { StorageTurns } from '../shares/storage-turns.ts';
import { type RefusalDelayOptions, RefusalDelays } from './limits/refusal-delays.ts';
import { type RequestContext, RequestContexts } from './request-context.ts';
import type { GatewayDeps } from '../deps.ts';
import { connectionObserver, instrumentRequests } from './instrumented-requests.ts';
import { OPENAPI_PATH, openApiOptions } from './openapi.ts';
import { type ErrorResponse, errorResponseOf } from './error-responses.ts';
import type { GatewayServer, RouteModule } from './routes.ts';
import { assertReadable, closeUnread } from './unread-bodies.ts';

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_EVENT_LOOP_DELAY_MS = 1_500;
const CORRELATION_HEADER = 'correlation-id';
const CORRELATION_ID = /^[A-Za-z0-9_.-]{8,64}$/;

export interface GatewayServerOptions {
  /** PEM texts. Undefined: no TLS handshake succeeds until a secure context is set. */
  tls: { cert: string; key: string } | undefined;
  routes: readonly RouteModule[];
  rateLimits?: CallerLimitOptions;
  byteLimits?: ByteLimitOptions;
  connectionLimits?: ConnectionLimitOptions;
  invalidTokenLimits?: InvalidTokenLimitOptions;
  largeResponses?: LargeResponseOptions;
  refusalDelays?: RefusalDelayOptions;
  /** Event loop delay beyond which requests are refused, 0 for none. Default 1,500. */
  maxEventLoopDelayMs?: number;
  /** Replaces some of the timeouts of connections. */
  timeouts?: Partial<Record<keyof typeof CONNECTION_TIMEOUTS, number>>;
}

/** What the hooks of the server share. */
interface ServerLimits {
  calls: CallerRateLimits;
  bytes: BodyByteLimits;
  connections: ConnectionLimits;
  invalidTokens: InvalidTokenLimits;
  largeResponses: LargeResponses;
}

/** The server with its routes, not listening yet. Throws for a route without `config.access`. */
export async function createGatewayServer(deps: GatewayDeps, options: GatewayServerOptions): Promise<GatewayServer> {
  const server = openServer(deps, options);
  const limits: ServerLimits = {
    calls: new CallerRateLimits(deps.clock, options.rateLimits),
    bytes: new BodyByteLimits(deps.clock, options.byteLimits),
    connections: new ConnectionLimits(
      { clock: deps.clock, onRefused: connectionObserver(deps) },
      options.connectionLimits,
    ),
    invalidTokens: new InvalidTokenLimits(deps.clock, options.invalidTokenLimits),
    largeResponses: new LargeResponses(deps.clock, options.largeResponses),
  };
  limits.connections.watch(server.server);
  const count: CountBytes = (request, bytes) => limits.bytes.count(request, bytes);
  addPartsBodies(server, addJsonBodies(server, count), count);
  server.setValidatorCompiler(compileValidator);
  // The type checker holds handlers to the schemas of their responses; the schemas drop no member at run time.
  server.setSerializerCompiler(() => (body) => JSON.stringify(body));
  const contexts = new RequestContexts();
  contexts.decorate(server);
  addFirstHook(server, deps, contexts);
  await server.register(fastifyUnderPressure, {
    maxEventLoopDelay: options.maxEventLoopDelayMs ?? MAX_EVENT_LOOP_DELAY_MS,
    exposeStatusRoute: false,
    pressureHandler: async () => {
      throw new TemperError('TEMPER_OVERLOADED', 'the gateway is overloaded', { retry: 2_000 });
    },
  });
  addHooks(server, deps, contexts, limits);
  const refusals = new RefusalDelays(deps.clock, options.refusalDelays);
  server.setErrorHandler(async (error, request, reply) => {
    const response = errorResponseOf(error);
    const context = contexts.of(request);
    const hasLeft = error === context.disconnected.reason;
    if (response.status >= 500 && !hasLeft && !isExpected(error)) {
      deps.log.error({ correlation: request.id, ...request.logFields, error }, 'a request failed');
    }
    closeUnread(request, reply);
    context.errorCode = response.body.error.code;
    await refusals.wait(context);
    return sendError(reply, response, deps);
  });
  await addDocument(server);
  for (const add of options.routes) add(server, deps);
  return server;
}

/** States that pass by themselves. The line of the request has their code. */
function isExpected(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_OVERLOADED') || isTemperError(error, 'TEMPER_POD_STARTING');
}

function openServer(deps: GatewayDeps, { tls, timeouts }: GatewayServerOptions): GatewayServer {
  const { handshakeTimeout, headersTimeout, connectionsCheckingInterval, maxHeaderSize, ...connection } = {
    ...CONNECTION_TIMEOUTS,
    ...timeouts,
  };
  return fastify({
    https: {
      ...tls,
      minVersion: 'TLSv1.3',
      // The only protocol: HTTP/2 would multiplex streams past the limits of connections.
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout,
      headersTimeout,
      connectionsCheckingInterval,
      maxHeaderSize,
    },
    ...connection,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    trustProxy: false,
    requestIdHeader: false,
    genReqId: (request) => correlationId(request.headers[CORRELATION_HEADER], deps),
    routerOptions: { maxParamLength: 256 },
    // A draining server responds with the common error form; see `addFirstHook`.
    return503OnClosing: false,
    // A path that no router can read; it reaches no hook and no route.
    frameworkErrors: (error, request, reply) => {
      closeUnread(request, reply);
      void sendError(reply, errorResponseOf(error), deps);
    },
  }).withTypeProvider<TypeBoxTypeProvider>();
}

async function addDocument(server: GatewayServer): Promise<void> {
  server.addSchema(ErrorBody);
  server.addSchema(ModelStreamLine);
  server.addSchema(SessionStreamLine);
  await server.register(fastifySwagger, openApiOptions());
  let document = '';
  server.get(OPENAPI_PATH, { config: { access: 'anyone' }, schema: { hide: true } }, async (_request, reply) => {
    document ||= JSON.stringify(server.swagger());
    return reply.type('application/json').send(document);
  });
}

function correlationId(header: string | string[] | undefined, deps: GatewayDeps): string {
  return typeof header === 'string' && CORRELATION_ID.test(header) ? header : deps.ids.next('call');
}

function addFirstHook(server: GatewayServer, deps: GatewayDeps, contexts: RequestContexts): void {
  server.addHook('onRequest', async (request, reply) => {
    void reply.header(CORRELATION_HEADER, request.id);
    contexts.create(request, reply);
    if (deps.draining.aborted) {
      void reply.header('connection', 'close');
      throw new TemperError('TEMPER_OVERLOADED', 'this gateway is shutting down; retry to reach another replica', {
        retry: 500,
      });
    }
    // Before anything of a body is read.
    if (request.is404) throw new TemperError('TEMPER_NOT_FOUND', 'there is no such route; see /v1/openapi.json');
    assertReadable(request);
  });
}

function addHooks(server: GatewayServer, deps: GatewayDeps, contexts: RequestContexts, limits: ServerLimits): void {
  const turns = new StorageTurns();
  server.addHook('onRoute', (route) => {
    assertRouteAccess(route.method, route.url, route.config?.access);
    if (route.config?.writesStorage === true) route.handler = inTurn(route.handler, turns, contexts);
  });
  server.addHook('onRequest', async (request, reply) => {
    const context = contexts.of(request);
    await authenticate(request, context, { identity: deps.identity, invalidTokens: limits.invalidTokens });
    assertConnected(context);
    assertConnection(request, reply, context, limits);
    const { longPoll, largeResponse } = request.routeOptions.config;
    limits.calls.acquire(context, longPoll === true ? 'longPolls' : 'inFlight', reply);
    if (callerOf(context) !== undefined) assertPlace(request, reply, limits);
    if (largeResponse === true) limits.largeResponses.acquire(context, reply);
    limits.bytes.acquire(context, request, reply);
    readIdempotencyKey(request, context);
  });
  instrumentRequests(server, deps, contexts);
}

/** The handler, which runs when it is the turn of the caller. The place is held until the handler ends, also without its client. */
function inTurn(
  handler: RouteHandlerMethod,
  turns: StorageTurns,
  contexts: RequestContexts,
): (this: FastifyInstance, request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return async function handleInTurn(request, reply) {
    const context = contexts.of(request);
    const caller = callerOf(context);
    if (caller === undefined) return await handler.call(this, request, reply);
    using _place = await turns.take({ agentUid: caller.id, namespace: caller.namespace }, context.disconnected);
    return await handler.call(this, request, reply);
  };
}

/** What a request takes is given back when its connection closes, which has happened for a client that left while its token was checked. */
function assertConnected({ disconnected }: RequestContext): void {
  if (disconnected.aborted) throw new TemperError('TEMPER_REQUEST_INVALID', 'the client left before its request began');
}

/** Closes the connection of a user or a peer whose namespace has as many as it may. Throws TEMPER_RATE_LIMITED. */
function assertConnection(
  request: FastifyRequest,
  reply: FastifyReply,
  { user, peer }: RequestContext,
  { connections }: ServerLimits,
): void {
  const caller = user ?? peer;
  if (caller === undefined) return;
  const group = `${user === undefined ? 'peers' : 'users'}/${caller.namespace}`;
  if (connections.countForGroup(request.socket, group)) return;
  void reply.header('connection', 'close');
  throw new TemperError(
    'TEMPER_RATE_LIMITED',
    `the callers of namespace ${caller.namespace} have too many connections`,
    {
      retry: 1_000,
    },
  );
}

/** Pods do not take the connections that are for users. Closes the one beyond. Throws TEMPER_OVERLOADED. */
function assertPlace(request: FastifyRequest, reply: FastifyReply, { connections }: ServerLimits): void {
  if (connections.authenticated(request.socket)) return;
  void reply.header('connection', 'close');
  throw new TemperError(
    'TEMPER_OVERLOADED',
    'pods hold all connections that this replica has for them; retry to reach another replica',
    { retry: 5_000 },
  );
}

function sendError(reply: FastifyReply, { status, body }: ErrorResponse, { metrics }: GatewayDeps): FastifyReply {
  const { code, retryAfterMs } = body.error;
  metrics.count('temper_http_errors_total', { code });
  if (retryAfterMs !== undefined) {
    void reply.header('retry-after', Math.max(1, Math.ceil(retryAfterMs / 1_000)));
  }
  return reply.code(status).type('application/json').send(body);
}
