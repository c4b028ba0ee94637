import type { FastifyReply, FastifyRequest } from 'fastify';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type { RequestContext, RequestContexts } from './request-context.ts';
import { RequestSampling } from './limits/request-sampling.ts';
import type { GatewayDeps } from '../deps.ts';
import type { GatewayServer } from './routes.ts';

/** Counts and logs requests: route pattern, caller and message id; never the content. */
export function instrumentRequests(server: GatewayServer, deps: GatewayDeps, contexts: RequestContexts): void {
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
    logRequest(request, reply, deps, contexts.of(request), sampling);
  });
}

function countRequest(request: FastifyRequest, reply: FastifyReply, { metrics }: GatewayDeps): void {
  const route = routeOf(request);
  metrics.count('temper_requests_total', { route, status: String(reply.statusCode) });
  if (request.routeOptions.config?.longPoll === true) return;
  metrics.observe('temper_request_duration_seconds', { route }, reply.elapsedTime / 1_000);
}

function logRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: GatewayDeps,
  { pod, podToken, user, logFields }: RequestContext,
  sampling: RequestSampling,
): void {
  const caller = pod ?? podToken ?? user;
  const [route, status, milliseconds] = [routeOf(request), reply.statusCode, Math.round(reply.elapsedTime)];
  const isLogged = sampling.isLogged({
    route,
    status,
    milliseconds,
    isLongPoll: request.routeOptions.config?.longPoll === true,
    ofPod: podToken !== undefined || pod !== undefined,
    isOutcome: route === POD_API_PATHS.deliveries,
    isTraced: logFields.sampled === true,
  });
  deps.log[isLogged ? 'info' : 'debug'](
    {
      correlation: request.id,
      method: request.method,
      route,
      status,
      milliseconds,
      ...(caller === undefined ? {} : { namespace: caller.namespace }),
      ...(pod === undefined ? {} : { agent: pod.agent }),
      ...(user === undefined ? {} : { token: user.tokenId }),
      ...logFields,
    },
    'request',
  );
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown';
}
