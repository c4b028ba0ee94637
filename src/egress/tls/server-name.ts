import type { Target } from '../../net/targets.ts';
import type { ClientHello } from './client-hello.ts';

/**
 * Why the ClientHello does not fit the target of the tunnel; undefined when it does. Servers with many hosts choose one by this name, so
 * another name could reach a host that the agent may not reach.
 */
export function serverNameProblem({ serverName }: ClientHello, { host, isIpAddress }: Target): string | undefined {
  // Server Name Indication allows no IP addresses (RFC 6066, 3).
  if (isIpAddress) {
    return serverName === undefined ? undefined : 'the TLS handshake names a server, and the tunnel an IP address';
  }
  if (serverName === undefined) return 'the TLS handshake names no server';
  return serverName === host ? undefined : 'the TLS handshake names another server than the tunnel';
}
