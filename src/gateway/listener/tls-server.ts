import { systemClock as clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayConfig } from '../config.ts';
import type { GatewayDeps } from '../deps.ts';
import { FileWatcher } from '../../kube/file-watcher.ts';
import type { GatewayServer, RouteModule } from '../http/routes.ts';
import { createGatewayServer } from '../http/server.ts';

/** Of all connections. Idle pods keep theirs, so that users of a full replica would find none. */
const POD_SHARE = 0.9;

interface TlsServerContext {
  readonly config: Pick<GatewayConfig, 'tls' | 'maxConnections'>;
  readonly log: Logger;
}

/** A server that uses the current certificate of the gateway, not listening yet. */
export async function openServer(
  { config, log }: TlsServerContext,
  deps: GatewayDeps,
  routes: readonly RouteModule[],
  stack: AsyncDisposableStack,
): Promise<GatewayServer> {
  const paths = [config.tls.certificate, config.tls.key];
  let server: GatewayServer | undefined;
  const certificate = stack.use(
    await FileWatcher.open({
      paths,
      clock,
      log,
      onChange: (contents) => server?.server.setSecureContext({ ...pairOf(contents), minVersion: 'TLSv1.3' }),
    }),
  );
  server = await createGatewayServer(deps, {
    tls: pairOf(certificate.contents),
    connectionLimits: { max: config.maxConnections, maxWithoutGroup: Math.ceil(config.maxConnections * POD_SHARE) },
    routes,
  });
  return server;
}

function pairOf([cert = Buffer.alloc(0), key = Buffer.alloc(0)]: readonly Buffer[]): { cert: string; key: string } {
  return { cert: cert.toString('utf8'), key: key.toString('utf8') };
}

export function portOf(server: GatewayServer): number {
  const address = server.server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
