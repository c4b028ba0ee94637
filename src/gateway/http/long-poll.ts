import type { FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../deps.ts';

/** Aborts when the wait ends, the client disconnects or the gateway drains; the long poll then responds with its current result. */
export function longPollSignal(
  milliseconds: number,
  request: FastifyRequest,
  { draining }: Pick<GatewayDeps, 'draining'>,
): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(Math.ceil(milliseconds)), request.disconnected, draining]);
}
