import { createServer, type Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { CONNECTION_TIMEOUTS, type ConnectionLimitOptions, ConnectionLimits } from '../../net/connection-limits.ts';
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
    options.connectionLimits,
  );
  connections.watch(server);
  server.on('clientError', (error, socket) => refuseBroken(error, socket as Socket));
  const deps: ExchangeDeps = { ...options, onAuthorized: (client) => connections.authenticated(client) };
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void serveTunnel(request, socket as Socket, head, deps);
  });
  server.on('request', (request, response) => {
    void servePlainRequest(request, response, deps);
  });
  return server;
}
