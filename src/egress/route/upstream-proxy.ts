import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { abortable } from '../../lib/async/abort.ts';
import { TemperError } from '../../lib/errors.ts';
import { dialTcp, type Network, validateAddresses } from '../../net/dialer.ts';
import type { Target } from '../../net/targets.ts';
import { authorizationForAgent } from './proxy-credentials.ts';
import type { Route } from './route.ts';

/** An HTTP proxy of the company that all connections pass. */
export interface UpstreamProxy {
  /** A name or an address, which may be private. */
  host: string;
  port: number;
  /** A file with `user:password`, for a proxy that demands them. */
  credentialFile?: string;
}

const MAX_HEADER_BYTES = 16_384;
const AUTHENTICATION_REQUIRED = 407;

/**
 * Asks the upstream proxy for a tunnel to each target. The upstream proxy resolves the names, because name servers inside
 * such a network often know no public name. So it must reach no private address for the egress proxy.
 */
export function upstreamProxyRoute(proxy: UpstreamProxy, network: Network): Route {
  return async (target, signal) => {
    if (!target.isHttps) throw new TemperError('TEMPER_FETCH_DENIED', 'only https leaves through the upstream proxy');
    // Of an address the rules hold here as well.
    if (target.isIpAddress) await validateAddresses(target, network, signal);
    const { credentialFile } = proxy;
    const authorization = credentialFile === undefined ? undefined : await authorizationForAgent(credentialFile);
    const connection = await dialTcp(proxy.port, await addressesOf(proxy, network, signal), network, signal);
    try {
      await openTunnel(connection.socket, target, authorization, signal);
      return connection;
    } catch (error) {
      connection.socket.destroy();
      throw error;
    }
  };
}

async function addressesOf({ host }: UpstreamProxy, network: Network, signal: AbortSignal): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  const addresses = await abortable(network.resolve(host, signal), signal).catch((cause: unknown) => {
    throw signal.aborted ? cause : unresolved(cause);
  });
  if (addresses.length === 0) throw unresolved();
  return addresses;
}

function unresolved(cause?: unknown): TemperError {
  return new TemperError('TEMPER_FETCH_FAILED', 'the upstream proxy cannot be resolved', { cause });
}

/** The socket leads to the target then. */
async function openTunnel(
  socket: Socket,
  { url, port }: Target,
  authorization: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const authority = `${url.hostname}:${port}`;
  const asking = request({
    createConnection: () => socket,
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
    },
    maxHeaderSize: MAX_HEADER_BYTES,
    signal,
  });
  // Also after the signal, when nothing waits any more.
  asking.on('error', () => undefined);
  const answered = once(asking, 'connect', { signal });
  asking.end();
  const [{ statusCode = 0 }, , head] = (await answered) as [IncomingMessage, Socket, Buffer];
  if (statusCode !== 200) throw refused(statusCode, authorization !== undefined);
  if (head.length > 0) socket.unshift(head);
}

function refused(status: number, hadCredentials: boolean): TemperError {
  const credentials = hadCredentials ? 'it does not take the credentials of the egress proxy' : 'it demands a password';
  const why = status === AUTHENTICATION_REQUIRED ? `: ${credentials}` : '';
  return new TemperError(
    'TEMPER_FETCH_FAILED',
    `the upstream proxy refused the connection with status ${status}${why}`,
  );
}
