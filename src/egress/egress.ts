import type { AddressInfo } from 'node:net';
import type { Server } from 'node:https';
import { GatewayClient } from '../gateway-client/gateway-client.ts';
import { GatewayConfigFiles } from '../gateway-client/endpoints/gateway-config-files.ts';
import { FileWatcher } from '../kube/file-watcher.ts';
import { startHealthServer } from '../kube/health.ts';
import { whenAborted } from '../lib/async/abort.ts';
import { systemClock as clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import { createSystemNetwork, type Network } from '../net/dialer.ts';
import type { Logger, LogLevel } from '../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { EGRESS_METRICS } from '../telemetry/temper-metrics.ts';
import type { EgressConfig } from './config.ts';
import { proxyAuthorization } from './route/proxy-credentials.ts';
import { directRoute, type Route } from './route/route.ts';
import { upstreamProxyRoute } from './route/upstream-proxy.ts';
import { GatewayAuthorizer } from './gateway-authorizer.ts';
import { Admission } from './proxy/admission.ts';
import { ConnectionReporter } from './proxy/connection-reporter.ts';
import { DEFAULT_LIMITS, OpenConnections } from './proxy/open-connections.ts';
import { createProxyServer, type ProxyServerOptions } from './proxy/server.ts';

export interface EgressRun {
  /** A log that leaves out the lines below the level. */
  createLog: (level: LogLevel) => Logger;
  /** Starts the drain. */
  signal: AbortSignal;
  /** Version of the software, for metrics. */
  version?: string;
  /** Resolves names and opens connections; by default the system does. */
  network?: Network;
  /** Called when the server accepts requests. */
  listening?: (addresses: { port: number; healthPort: number }) => void;
}

/** Milliseconds for open connections to end. */
const DRAIN_TIMEOUT_MS = 20_000;
const DRAIN_POLL_MS = 100;

/**
 * Runs one replica of the egress proxy until the signal aborts and its connections have ended. Throws TEMPER_CONFIGURATION_INVALID for a
 * file with credentials of the upstream proxy that cannot be used.
 */
export async function runEgress(config: EgressConfig, run: EgressRun): Promise<void> {
  const { signal } = run;
  const log = run.createLog(config.logLevel);
  const credentialFile = config.upstreamProxy?.credentialFile;
  // A file that no connection can use ends the process here, and not each connection.
  if (credentialFile !== undefined) await proxyAuthorization(credentialFile);
  await using stack = new AsyncDisposableStack();
  const registry = createRegistry();
  const metrics = registerMetrics(registry, EGRESS_METRICS);
  metrics.gauge('temper_build_info', { version: run.version ?? '', node: process.versions.node }, 1);
  const pending = new Set(['listener']);
  const configFiles = new GatewayConfigFiles({
    folder: config.gateway.endpoints,
    tokenFile: config.gateway.tokenFile,
    clock,
  });
  const client = stack.use(new GatewayClient({ configFiles, clock, random: Math.random }));
  const authorizer = new GatewayAuthorizer(client);
  const connections: OpenConnections = new OpenConnections({
    limits: DEFAULT_LIMITS,
    ids: ulids,
    onReportDue: () => reporter.due(),
  });
  const reporter = new ConnectionReporter({ clock, log, authorizer, connections });
  metrics.watch('temper_egress_open_connections', {}, () => connections.size);
  const notReady = (): string[] => [...pending, ...(reporter.hasGateway ? [] : ['gateway'])];
  const health = stack.use(await startHealthServer({ ...config.health, clock, registry, notReady }));
  const route = routeOf(config, run.network ?? createSystemNetwork());
  const admission = new Admission({ clock, authorizer });
  const deps = { clock, log, audit: run.createLog('info'), route, admission, connections, metrics };
  const server = await openServer(config, deps, stack);
  const reporting = new AbortController();
  const reports = reporter.run(reporting.signal);
  await listen(server, config.listen);
  pending.delete('listener');
  run.listening?.({ port: (server.address() as AddressInfo).port, healthPort: health.port });
  await whenAborted(signal);
  pending.add('drain');
  log.info({}, 'draining');
  await drain(server, connections);
  reporting.abort();
  await reports;
}

function routeOf({ upstreamProxy, isExcluded }: EgressConfig, system: Network): Route {
  const network = { ...system, isExcluded };
  return upstreamProxy === undefined ? directRoute(network) : upstreamProxyRoute(upstreamProxy, network);
}

/** Uses the current certificate, which the operator renews. */
async function openServer(
  { tls, maxConnections }: EgressConfig,
  deps: Omit<ProxyServerOptions, 'tls' | 'connectionLimits'>,
  stack: AsyncDisposableStack,
): Promise<Server> {
  let server: Server | undefined;
  const files = stack.use(
    await FileWatcher.open({
      paths: [tls.certificate, tls.key],
      clock,
      log: deps.log,
      onChange: (contents) => server?.setSecureContext({ ...pairOf(contents), minVersion: 'TLSv1.3' }),
    }),
  );
  server = createProxyServer({ ...deps, tls: pairOf(files.contents), connectionLimits: { max: maxConnections } });
  return server;
}

function pairOf([cert = Buffer.alloc(0), key = Buffer.alloc(0)]: readonly Buffer[]): { cert: string; key: string } {
  return { cert: cert.toString('utf8'), key: key.toString('utf8') };
}

function listen(server: Server, address: EgressConfig['listen']): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(address, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

/** New connections go to another replica; open ones may end, for a while. */
async function drain(server: Server, connections: OpenConnections): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const end = clock.monotonic() + DRAIN_TIMEOUT_MS;
  const { signal } = new AbortController();
  while (connections.size > 0 && clock.monotonic() < end) await clock.sleep(DRAIN_POLL_MS, signal);
  connections.endAll(new TemperError('TEMPER_OVERLOADED', 'this replica of the egress proxy is shutting down'));
  server.closeAllConnections();
  await closed;
}
