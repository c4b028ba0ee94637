import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Calls } from './calls.ts';
import type { GatewayDeps } from './deps.ts';
import type { GatewayServer } from './routes.ts';

/** Counts and logs calls: the pattern of its route, who called and which message it was about; never what was said. */
export function observeCalls(server: GatewayServer, deps: GatewayDeps, calls: Calls): void {
  let waiting = 0;
  deps.metrics.watch('temper_long_polls', {}, () => waiting);
  server.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config?.longPoll !== true) return;
    waiting += 1;
    reply.raw.once('close', () => {
      waiting -= 1;
    });
  });
  server.addHook('onResponse', async (request, reply) => {
    countCall(request, reply, deps);
    logCall(request, reply, deps, calls);
  });
}

function countCall(request: FastifyRequest, reply: FastifyReply, { metrics }: GatewayDeps): void {
  const route = routeOf(request);
  metrics.count('temper_requests_total', { route, status: String(reply.statusCode) });
  if (request.routeOptions.config?.longPoll === true) return;
  metrics.observe('temper_request_duration_seconds', { route }, reply.elapsedTime / 1_000);
}

function logCall(request: FastifyRequest, reply: FastifyReply, deps: GatewayDeps, calls: Calls): void {
  const { pod, podToken, person, about } = calls.of(request);
  const caller = pod ?? podToken ?? person;
  deps.log.info(
    {
      correlation: request.id,
      method: request.method,
      route: routeOf(request),
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
      ...(caller === undefined ? {} : { namespace: caller.namespace }),
      ...(pod === undefined ? {} : { agent: pod.agent }),
      ...(person === undefined ? {} : { token: person.tokenId }),
      ...about,
    },
    'call',
  );
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'unknown';
}
