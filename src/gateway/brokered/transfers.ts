import type { FastifyReply, FastifyRequest } from 'fastify';
import { CallShares, type Shares } from '../shares/call-shares.ts';

/** A request, or its answer, has megabytes: with its copies about 9 MiB, until the answer is sent. */
export const TRANSFERS: Shares = { agent: 2, namespace: 4, all: 8 };
/** Requests of a call that its pod abandoned, and answers that no pod reads, end. */
const MAX_TRANSFER_MS = 5 * 60_000;

/** Takes a share before anything of a body is read, and gives it back when the response has ended. Throws TEMPER_RATE_LIMITED. */
export function limitTransfers(shares = new CallShares(TRANSFERS)) {
  return async ({ pod }: FastifyRequest, { raw }: FastifyReply): Promise<void> => {
    const share = shares.take(pod);
    const timer = setTimeout(() => raw.destroy(), MAX_TRANSFER_MS);
    raw.once('close', () => {
      clearTimeout(timer);
      share[Symbol.dispose]();
    });
  };
}
