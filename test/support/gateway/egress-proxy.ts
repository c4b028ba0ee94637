/** A replica of the egress proxy, whose connections a gateway of the fixture decides, and tools that gateways execute through it. */
import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { McpServerTarget } from '../../../src/capabilities/assess.ts';
import type { Connection } from '../../../src/connections/connection.ts';
import { egressConfig } from '../../../src/egress/config.ts';
import { runEgress } from '../../../src/egress/egress.ts';
import { CapabilityTools } from '../../../src/gateway/capabilities/capability-tools.ts';
import { HostCircuits } from '../../../src/gateway/capabilities/host-circuits.ts';
import type { GatewaySession } from '../../../src/gateway/capabilities/mcp/gateway-session.ts';
import { SessionPool } from '../../../src/gateway/capabilities/mcp/session-pool.ts';
import { OAuthTokens } from '../../../src/gateway/capabilities/oauth-tokens.ts';
import { executedCapability } from '../../../src/gateway/capabilities/start.ts';
import { writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import type { EgressEndpoints } from '../../../src/gateway-client/endpoints/egress-endpoints.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { platformTrust } from '../../../src/net/proxied-connection.ts';
import { proxyConnector } from '../../../src/net/tunnel.ts';
import { createLogger, type Logger, type LogLevel } from '../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../src/telemetry/secret-redactor.ts';
import { namesInside } from '../egress/inside-addresses.ts';
import { GATEWAY_TOKEN, type ModelGatewayFixture, type ModelGatewayReplica } from './model-gateway-fixture.ts';

const TLS = new URL('../../fixtures/tls/', import.meta.url);
const SERVER_NAME = 'api.example.com';
const PUBLIC = '93.184.215.14';
/** Names that lead to addresses inside. */
export const INTERNAL_NAMES = namesInside('example.com', PUBLIC);

export interface EgressSetup {
  fixture: ModelGatewayFixture;
  gateway: ModelGatewayReplica;
}

/** The public address of every name ends at the port of this machine that `portOf` gives for the port of the target. */
export async function startEgressProxy(
  { fixture, gateway }: EgressSetup,
  portOf: (port: number) => number,
  signal: AbortSignal,
) {
  const folder = await mkdtemp(join(fixture.folder, 'egress-'));
  const authority = await readFile(new URL('certificate.pem', TLS), 'utf8');
  const url = `https://127.0.0.1:${gateway.port}`;
  await writeGatewayConfig(folder, { url, name: SERVER_NAME, authority, token: 'egress-1' });
  const [certificate = '', key = ''] = ['certificate.pem', 'key.pem'].map((name) => fileURLToPath(new URL(name, TLS)));
  const config = egressConfig({
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    tls: { certificate, key },
    gateway: { endpoints: folder, tokenFile: join(folder, 'token') },
    // The audit lines, which tests read, do not depend on it.
    logLevel: 'error',
  });
  const network = {
    resolve: async (host: string) => INTERNAL_NAMES[host] ?? [PUBLIC],
    connect: async (_address: string, port: number) => {
      const socket = connect({ host: '127.0.0.1', port: portOf(port) });
      await once(socket, 'connect');
      return socket;
    },
  };
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) };
  const createLog = (level: LogLevel): Logger => createLogger({ level, destination, secrets: createSecretRedactor() });
  const ready = Promise.withResolvers<{ port: number; healthPort: number }>();
  const running = runEgress(config, { createLog, signal, network, listening: ready.resolve });
  running.catch(ready.reject);
  return { ...(await ready.promise), running, lines, certificate: authority };
}

/** What a pod or a gateway with the token reads about the proxy. */
export function egressEndpoints(
  { port, certificate }: { port: number; certificate: string },
  token: string,
): Pick<EgressEndpoints, 'current'> {
  const endpoint = {
    origin: `https://127.0.0.1:${port}`,
    connect: proxyConnector({ serverName: SERVER_NAME, ca: certificate }),
    targetTrust: platformTrust(certificate),
    token,
  };
  return { current: async () => endpoint };
}

/** The tools of Capabilities, executed through the proxy. */
export function brokeredCapabilities(
  { fixture }: Pick<EgressSetup, 'fixture'>,
  proxy: { port: number; certificate: string },
  {
    connections,
    mcpServers = [],
    signal,
  }: { connections: readonly Connection[]; mcpServers?: readonly McpServerTarget[]; signal: AbortSignal },
): CapabilityTools {
  const files = egressEndpoints(proxy, GATEWAY_TOKEN);
  const { deliveryTokens } = fixture;
  const execution = {
    files,
    deliveryTokens,
    circuits: new HostCircuits(systemClock),
    sessions: new SessionPool<GatewaySession>(systemClock, signal),
    tokens: new OAuthTokens({ files, deliveryTokens, clock: systemClock }),
    clock: systemClock,
  };
  return new CapabilityTools({
    mcpServers,
    hasEgress: true,
    connections,
    hasOtherTool: () => false,
    onChange: () => undefined,
    onUnavailable: () => undefined,
    create: (capability, usable) => executedCapability(capability, usable, execution),
  });
}
