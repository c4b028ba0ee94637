/** Opens connections only to validated addresses. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type SecureContext } from 'node:tls';
import { abortable } from '../lib/async/abort.ts';
import { TemperError } from '../lib/errors.ts';
import { isPrivateAddress, isPublicAddress } from './addresses.ts';
import { createResolver } from './resolver.ts';
import type { Target } from './targets.ts';

export interface Network {
  /** All addresses of a host name. A resolver may ignore the signal; the fetch does not wait for it after an abort. */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>;
  /** A connected TCP socket to this address. */
  connect(address: string, port: number, signal: AbortSignal): Promise<Socket>;
  /** Public addresses that must not be reached either, such as those of the cluster. Absent: none. */
  isExcluded?(address: string): boolean;
}

export function createSystemNetwork(): Network {
  return {
    resolve: createResolver(),
    connect: (address, port, signal) => established(connectTcp({ host: address, port }), 'connect', signal),
  };
}

/**
 * The addresses to connect to, in order. A single internal address rejects the whole name: the next DNS response could list that address
 * first. Throws TEMPER_FETCH_DENIED or TEMPER_FETCH_FAILED.
 */
export async function validateAddresses(
  target: Target,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const excluded = (address: string): boolean => network.isExcluded?.(address) === true;
  if (target.isIpAddress) {
    if (excluded(target.host)) throw notPublic(`the address ${target.host} is not public`);
    return [target.host];
  }
  let addresses: readonly string[];
  try {
    addresses = await abortable(network.resolve(target.host, signal), signal);
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new TemperError('TEMPER_FETCH_FAILED', `the host ${target.host} cannot be resolved`, { cause });
  }
  if (addresses.length === 0) {
    throw new TemperError('TEMPER_FETCH_FAILED', `the host ${target.host} has no address`);
  }
  const isAllowed = (address: string): boolean =>
    (isPublicAddress(address) && !excluded(address)) || (target.mayBePrivate && isPrivateAddress(address));
  if (!addresses.every(isAllowed)) {
    throw notPublic(`the host ${target.host} resolves to an address that is not public`);
  }
  return addresses.slice(0, MAX_ADDRESSES);
}

function notPublic(message: string): TemperError {
  return new TemperError('TEMPER_FETCH_DENIED', message);
}

const MAX_ADDRESSES = 4;

/** A socket to the first address that accepts the connection. For https, SNI and the certificate check use the target's host name. */
export function dial(
  target: Target,
  addresses: readonly string[],
  network: Network,
  signal: AbortSignal,
  certificateAuthorities: readonly string[] | undefined,
): Promise<Socket> {
  return firstOf(addresses, signal, async (address) => {
    const socket = await network.connect(address, target.port, signal);
    return target.isHttps ? secure(socket, target, signal, certificateAuthorities) : socket;
  });
}

/** A TCP socket to the first address that accepts the connection, and that address. */
export function dialTcp(
  port: number,
  addresses: readonly string[],
  network: Network,
  signal: AbortSignal,
): Promise<{ socket: Socket; address: string }> {
  return firstOf(addresses, signal, async (address) => ({
    socket: await network.connect(address, port, signal),
    address,
  }));
}

/** The first result, in the order of the addresses. */
async function firstOf<T>(
  addresses: readonly string[],
  signal: AbortSignal,
  connect: (address: string) => Promise<T>,
): Promise<T> {
  let last: unknown;
  for (const address of addresses) {
    try {
      return await connect(address);
    } catch (error) {
      last = error;
      if (signal.aborted) break;
    }
  }
  throw last;
}

/** TLS on the socket, with the name of the target. `trust`: certificate authorities, PEM, or a context with them. Destroys the socket when it fails. */
export async function secure(
  socket: Duplex,
  target: Target,
  signal: AbortSignal,
  trust?: readonly string[] | SecureContext,
): Promise<Socket> {
  const tls = connectTls({
    socket,
    // SNI allows no IP address; the certificate is still checked against the address.
    ...(target.isIpAddress ? { host: target.host } : { servername: target.host }),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    ...trustOptions(trust),
  });
  try {
    return await established(tls, 'secureConnect', signal);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function trustOptions(trust: readonly string[] | SecureContext | undefined): {
  ca?: string[];
  secureContext?: SecureContext;
} {
  if (trust === undefined) return {};
  return 'context' in trust ? { secureContext: trust } : { ca: [...trust] };
}

/** The socket after its event. An error and an aborted signal destroy it. */
async function established(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<Socket> {
  try {
    await abortable(once(socket, event), signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
