/** Opens connections only to validated addresses. */
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { TemperError } from '../lib/errors.ts';
import { isPublicAddress } from './addresses.ts';
import type { Target } from './targets.ts';

export interface Network {
  /** All addresses of a host name. A resolver may ignore the signal; the fetch does not wait for it after an abort. */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>;
  /** A connected TCP socket to this address. */
  connect(address: string, port: number, signal: AbortSignal): Promise<Socket>;
}

export const systemNetwork: Network = {
  async resolve(host) {
    const found = await lookup(host, { all: true, order: 'verbatim' });
    return found.map((entry) => entry.address);
  },
  connect(address, port, signal) {
    return new Promise((resolve, reject) => {
      const socket = connectTcp({ host: address, port });
      const onAbort = (): void => {
        socket.destroy();
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      socket.once('connect', () => {
        signal.removeEventListener('abort', onAbort);
        socket.off('error', reject);
        resolve(socket);
      });
      socket.once('error', reject);
    });
  },
};

/**
 * The addresses to connect to, in order. A single internal address rejects the whole name: the next DNS response could list that address
 * first. Throws TEMPER_FETCH_DENIED or TEMPER_FETCH_FAILED.
 */
export async function validateAddresses(
  target: Target,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (target.isIpAddress) return [target.host];
  let addresses: readonly string[];
  try {
    addresses = await settledOrAborted(network.resolve(target.host, signal), signal);
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new TemperError('TEMPER_FETCH_FAILED', `the host ${target.host} cannot be resolved`, { cause });
  }
  if (addresses.length === 0) {
    throw new TemperError('TEMPER_FETCH_FAILED', `the host ${target.host} has no address`);
  }
  if (!addresses.every(isPublicAddress)) {
    throw new TemperError('TEMPER_FETCH_DENIED', `the host ${target.host} resolves to an address that is not public`);
  }
  return addresses.slice(0, MAX_ADDRESSES);
}

/** The result of the work, or a rejection with the reason of the signal as soon as it aborts. */
async function settledOrAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const MAX_ADDRESSES = 4;

/** A socket to the first address that accepts the connection. For https, SNI and the certificate check use the target's host name. */
export async function dial(
  target: Target,
  addresses: readonly string[],
  network: Network,
  signal: AbortSignal,
  certificateAuthorities: readonly string[] | undefined,
): Promise<Socket> {
  let last: unknown;
  for (const address of addresses) {
    try {
      const socket = await network.connect(address, target.port, signal);
      return target.isHttps ? await secure(socket, target, signal, certificateAuthorities) : socket;
    } catch (error) {
      last = error;
      if (signal.aborted) break;
    }
  }
  throw last;
}

function secure(
  socket: Socket,
  target: Target,
  signal: AbortSignal,
  certificateAuthorities: readonly string[] | undefined,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const tls = connectTls({
      socket,
      // SNI allows no IP address; the certificate is still checked against the address.
      ...(target.isIpAddress ? { host: target.host } : { servername: target.host }),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      ...(certificateAuthorities === undefined ? {} : { ca: [...certificateAuthorities] }),
    });
    const onAbort = (): void => {
      tls.destroy();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    tls.once('secureConnect', () => {
      signal.removeEventListener('abort', onAbort);
      tls.off('error', reject);
      resolve(tls);
    });
    tls.once('error', (error) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      reject(error);
    });
  });
}
