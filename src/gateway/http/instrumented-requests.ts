import type { FastifyReply, FastifyRequest } from 'fastify';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type { ConnectionRefusal } from '../../net/connection-limits.ts';
import { isMilestone, MinuteCounts } from './limits/minute-counts.ts';
import { callerFields, RefusedCallers } from './limits/refused-callers.ts';
import { RequestSampling } from './limits/request-sampling.ts';
import type { RequestContext, RequestContexts } from './request-context.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from './routes.ts';

/** Counts and logs requests: route pattern, caller and message id; never the content. */
export function instrumentRequests(server: GatewayServer, deps: GatewayDeps, contexts: RequestContexts): void {
  const refusals = new RefusedCallers(deps);
  let longPolls = 0;
  const sampling = new RequestSampling();
  deps.metrics.watch('temper_long_polls', {}, () => longPolls);
  server.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config?.longPoll !== true) return;
    longPolls += 1;
    reply.raw.once('close', () => {
      longPolls -= 1;
    });
  });
  server.addHook('onResponse', async (request, reply) => {
    countRequest(request, reply, deps);
    logRequest(request, reply, deps, { context: contexts.of(request), refusals, sampling });
  });
}

/** Counts connections that are not served, and names their address: in the log at the first, tenth, hundredth … time of a minute. */
export function connectionObserver({ clock, log, metrics }: GatewayDeps) {
  const counts = new MinuteCounts(clock);
  return (reason: ConnectionRefusal, address: string): void => {
    metrics.count('temper_connections_refused_total', { reason });
    const refused = counts.add(`${reason} ${address}`);
    if (isMilestone(refused)) log.warn({ address, reason, refused }, 'connections of an address are not served');
  };
}

function countRequest(request: FastifyRequest, reply: FastifyReply, { metrics }: GatewayDeps): void {
  const route = routeOf(request);
  metrics.count('temper_requests_total', { route, status: String(reply.statusCode) });
  if (request.routeOptions.config?.longPoll === true) return;
  metrics.observe('temper_request_duration_seconds', { route }, reply.elapsedTime / 1_000);
}

function isSampled(
  request: FastifyRequest,
  { statusCode: status, elapsedTime }: FastifyReply,
  { pod, podToken, logFields }: RequestContext,
  sampling: RequestSampling,
): boolean {
  return sampling.isLogged({
    route: routeOf(request),
    status,
    milliseconds: Math.round(elapsedTime),
    isLongPoll: request.routeOptions.config?.longPoll === true,
    ofPod: podToken !== undefined || pod !== undefined,
    isOutcome: request.routeOptions.url === POD_API_PATHS.deliveries,
    isTraced: logFields.sampled === true,
  });
}

interface RequestLog {
  context: RequestContext;
  refusals: RefusedCallers;
  sampling: RequestSampling;
}

function logRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { log }: GatewayDeps,
  { context, refusals, sampling }: RequestLog,
): void {
  const { errorCode, logFields } = context;
  if (!refusals.count(context, { status: reply.statusCode, code: errorCode })) return;
  log[isSampled(request, reply, context, sampling) ? 'info' : 'debug'](
    {
      correlation: request.id,
      method: request.method,
      route: routeOf(request),
      status: reply.statusCode,
      ...(errorCode === undefined ? {} : { code: errorCode }),
      milliseconds: Math.round(reply.elapsedTime),
      ...callerFields(context),
      ...logFields,
    },
    'request',
  );
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown';
}
