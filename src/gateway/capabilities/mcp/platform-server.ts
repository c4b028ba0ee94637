import { once } from 'node:events';
import { connect } from 'node:net';
import { MCP_BRIDGE } from '../../../api/cluster.ts';
import { abortable } from '../../../lib/async/abort.ts';
import { digestOf } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { portOf, type ReachableHosts } from '../egress-hosts.ts';
import type { ServerEndpoint } from '../server-requests.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * The endpoint of an MCP server that the platform runs, for the agents of one namespace. A gateway connects to it directly: the egress proxy
 * reaches no private address for anyone, and the server has neither a network nor a credential. The platform wrote the name.
 */
export function platformEndpoint(
  { name, url }: { readonly name: string; readonly url: URL },
  namespace: string,
): Omit<ServerEndpoint, 'kind'> {
  return {
    url,
    connection: undefined,
    hosts: hostsOf(name, url),
    platform: {
      name,
      headersFor: ({ claims }) => ({
        [MCP_BRIDGE.ownerHeader]: namespace,
        // The session of an agent stays with its process when another gateway executes a call.
        [MCP_BRIDGE.sessionHeader]: digestOf([claims.agentUid, claims.session]),
      }),
    },
  };
}

function hostsOf(name: string, url: URL): ReachableHosts {
  const port = portOf(url);
  return {
    rules: {
      allowHttp: true,
      ports: [port],
      privateHosts: new Set([url.hostname]),
      hostDenialReason: (host) => (host === url.hostname ? undefined : 'it is not the host of the server'),
    },
    connect: () => async (_target, signal) => {
      const socket = connect({ host: url.hostname, port });
      try {
        await abortable(once(socket, 'connect'), AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]));
        return socket;
      } catch (cause) {
        socket.destroy();
        const message = `MCP server "${name}" of the platform cannot be reached; the platform team can look at its pod`;
        throw new TemperError('TEMPER_MCP_SERVER_FAILED', message, { cause });
      }
    },
  };
}
