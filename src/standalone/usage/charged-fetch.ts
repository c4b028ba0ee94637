import type { Socket } from 'node:net';
import type { Ledger } from '../../ledger/port.ts';
import { quotaExceeded } from '../../ledger/quota-exceeded.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Network } from '../../net/dialer.ts';
import { createSafeBytesFetch, type SafeBytesFetch, type SafeFetchOptions } from '../../net/fetch.ts';

export interface ChargedFetchDeps
  extends Pick<
    SafeFetchOptions,
    'certificateAuthorities' | 'maxBodyBytes' | 'redirects' | 'sentHeaders' | 'timeLimit'
  > {
  clock: Clock;
  ids: IdGenerator;
  network: Network;
  /** Of the agent whose tools use it. */
  ledger: Pick<Ledger, 'reserve' | 'commit'>;
}

/** How much a request moves is known only after it, so one byte stands for it in the check. */
const LEAST = { networkBytes: 1 };

/**
 * Charges what each request moved on its connections, in both directions, redirects and failures included. Throws TEMPER_QUOTA_EXCEEDED
 * when nothing is left of `networkBytesPerHour`.
 */
export function chargedFetch({ clock, ids, network, ledger, ...options }: ChargedFetchDeps): SafeBytesFetch {
  return async (request, rules, op) => {
    const sockets: Socket[] = [];
    const connect: Network['connect'] = async (...target) => {
      const socket = await network.connect(...target);
      sockets.push(socket);
      return socket;
    };
    const reservation = await ledger.reserve(LEAST, chargeOf(op, ids));
    if (!reservation.granted) throw quotaExceeded(reservation, LEAST);
    try {
      return await createSafeBytesFetch({ ...options, clock, network: { ...network, connect } })(request, rules, op);
    } finally {
      const networkBytes = sockets.reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);
      await ledger.commit(reservation.id, { networkBytes });
    }
  };
}

/** A tool may make several requests in one call: each has a charge of its own. */
function chargeOf(op: CallOptions, ids: IdGenerator): CallOptions {
  return { ...op, key: `${op.key}/${ids.next('request')}` };
}
