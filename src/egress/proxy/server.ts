import { createServer, type Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { CONNECTION_TIMEOUTS, type ConnectionLimitOptions, ConnectionLimits } from '../../net/connection-limits.ts';
import type { ConnectionOwner } from '../authorizer.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ExchangeDeps } from './exchange.ts';
import { refuseBroken } from './refusal.ts';
import { servePlainRequest } from './plain-request.ts';
import { serveTunnel } from './tunnel.ts';

export interface ProxyServerOptions extends Omit<ExchangeDeps, 'onAuthorized'> {
  /** PEM texts. */
  tls: { cert: string; key: string };
  connectionLimits?: ConnectionLimitOptions;
  /** Replaces some of the timeouts of connections. */
  timeouts?: Partial<Record<keyof typeof CONNECTION_TIMEOUTS, number>>;
}

/** An upload through a plain request may take as long as the idle time of connections allows. */
const REQUEST_TIMEOUT_MS = 600_000;

/**
 * A gateway opens connections for the agents of all namespaces from its address, so they count for the namespaces. The numbers permit the calls
 * and MCP sessions that gateways permit: a call has one connection, and a session two, its stream and one for calls.
 */
export const CONNECTION_LIMITS = {
  perGroup: 96,
  groupsPerAddress: 768,
  // Connections that a gateway opens at the same time, before their namespaces are known.
  perSharedAddress: 256,
  unauthenticatedShared: { perSecond: 100, burst: 512 },
  // Another pod may get the address of a gateway that is gone.
  sharedAddressTtlMs: 60_000,
} as const satisfies ConnectionLimitOptions;

/** The proxy, not listening yet: HTTPS to the pods, `CONNECT` and requests with whole URLs on it. */
export function createProxyServer(options: ProxyServerOptions): Server {
  const timeouts = { ...CONNECTION_TIMEOUTS, requestTimeout: REQUEST_TIMEOUT_MS, ...options.timeouts };
  const { connectionTimeout, ...limits } = timeouts;
  const server = createServer({ ...options.tls, ...limits, minVersion: 'TLSv1.3', ALPNProtocols: ['http/1.1'] });
  server.timeout = connectionTimeout;
  // Node would drop further headers without an error; their number is checked with the others.
  server.maxHeadersCount = 0;
  const connections = new ConnectionLimits(
    {
      clock: options.clock,
      // A flood of connections must not become one of log lines.
      onRefused: (reason) => options.metrics.count('temper_egress_refused_connections_total', { reason }),
    },
    { ...CONNECTION_LIMITS, ...options.connectionLimits },
  );
  connections.watch(server);
  server.on('clientError', (error, socket) => refuseBroken(error, socket as Socket));
  const deps: ExchangeDeps = { ...options, onAuthorized: (client, owner) => countFor(owner, client, connections) };
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void serveTunnel(request, socket as Socket, head, deps);
  });
  server.on('request', (request, response) => {
    void servePlainRequest(request, response, deps);
  });
  return server;
}

/** Throws TEMPER_RATE_LIMITED. */
function countFor({ caller, namespace }: ConnectionOwner, client: Socket, connections: ConnectionLimits): void {
  connections.authenticated(client);
  if (caller === 'Pod' || connections.countForGroup(client, `${client.remoteAddress ?? ''} ${namespace}`)) return;
  throw new TemperError(
    'TEMPER_RATE_LIMITED',
    `the agents of namespace ${namespace} have too many open connections through this gateway`,
    { retry: 1_000 },
  );
}
