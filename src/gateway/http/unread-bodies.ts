import type { FastifyReply, FastifyRequest } from 'fastify';
import { TemperError } from '../../lib/errors.ts';

/** Node reads and discards what is left of a body after the response. Beyond this size closing the connection is cheaper. */
const MAX_DISCARDED_BYTES = 16_384;
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** Throws TEMPER_REQUEST_INVALID for a body that no route reads: one that is compressed, or that belongs to a method without a body. */
export function assertReadable(request: FastifyRequest): void {
  const { 'content-encoding': encoding = 'identity' } = request.headers;
  if (encoding.toLowerCase() !== 'identity') {
    throw new TemperError('TEMPER_REQUEST_INVALID', 'header Content-Encoding: send the body without compression');
  }
  if (METHODS_WITHOUT_BODY.has(request.method) && hasBody(request)) {
    throw new TemperError('TEMPER_REQUEST_INVALID', `a ${request.method} request has no body; remove it`);
  }
}

/** Closes the connection after an error response to a request of which much is unread. */
export function closeUnread(request: FastifyRequest, reply: FastifyReply): void {
  const { complete, headers } = request.raw;
  if (complete || !hasBody(request)) return;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > MAX_DISCARDED_BYTES) {
    void reply.header('connection', 'close');
  }
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
