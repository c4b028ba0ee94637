import type { FastifyRequest } from 'fastify';
import type { GatewayDeps } from './deps.ts';

/** Aborts when the time is over, the caller is gone or the gateway drains; a long poll ends with what it has then. */
export function waitSignal(
  milliseconds: number,
  request: FastifyRequest,
  { draining }: Pick<GatewayDeps, 'draining'>,
): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(milliseconds), request.gone, draining]);
}
