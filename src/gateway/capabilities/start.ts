import type { Connection } from '../../connections/connection.ts';
import { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';
import type { BrokeredTool, BrokeredTools } from '../brokered/port.ts';
import type { WatchedAgentDirectory } from '../cluster/agent-directory.ts';
import type { GatewayInformers } from '../cluster/informers.ts';
import type { EgressFiles } from '../config.ts';
import type { DeliveryTokens } from '../delivery/token.ts';
import type { CapabilityCatalog } from '../discovery/catalog.ts';
import type { McpServerTarget, UsableCapability } from '../../capabilities/assess.ts';
import type { BrokeredCapability } from '../../capabilities/capability-object.ts';
import { callA2aTool } from './a2a-tool.ts';
import { CapabilityTools } from './capability-tools.ts';
import { type EgressHostsDeps, portOf, reachableHosts } from './egress-hosts.ts';
import { HostCircuits } from './host-circuits.ts';
import { callHttpTool } from './http-tool.ts';
import type { GatewaySession } from './mcp/gateway-session.ts';
import { callMcpTool, loadMcpClient } from './mcp/mcp-tool.ts';
import { platformEndpoint } from './mcp/platform-server.ts';
import { SessionPool } from './mcp/session-pool.ts';
import { OAuthTokens } from './oauth-tokens.ts';

interface CapabilityToolsDeps {
  /** Absent: no egress proxy is installed. */
  egress?: EgressFiles;
  connections: readonly Connection[];
  mcpServers: readonly McpServerTarget[];
  /** Tools of services of the platform. */
  services: Pick<BrokeredTools, 'find'>;
  deliveryTokens: Pick<DeliveryTokens, 'sign'>;
  catalog: Pick<CapabilityCatalog, 'promotedTools'>;
  directory: Pick<WatchedAgentDirectory, 'toolsChanged'>;
  clock: Clock;
  log: Pick<Logger, 'warn'>;
  /** Ends the sessions at MCP servers. */
  draining: AbortSignal;
  metrics: Pick<GatewayMetrics, 'watch'>;
}

/** The tools of the Capability objects that the gateway watches, executed through the egress proxy. */
export function watchCapabilities(
  { capabilities, tools: emergent }: Pick<GatewayInformers, 'capabilities' | 'tools'>,
  deps: CapabilityToolsDeps,
): BrokeredTools {
  const tools = openCapabilityTools(deps);
  capabilities.subscribe((change) => tools.capabilityChanged(change));
  emergent.subscribe(({ object }) => tools.refresh(object.metadata.namespace ?? ''));
  return tools;
}

function openCapabilityTools(deps: CapabilityToolsDeps): CapabilityTools {
  const { egress, connections, mcpServers, services, catalog, clock } = deps;
  const execution = openExecution(deps);
  return new CapabilityTools({
    connections,
    mcpServers,
    hasEgress: egress !== undefined,
    hasOtherTool: (namespace, name) =>
      services.find(namespace, name) !== undefined ||
      // Those of tier Shared: no agent has an empty name.
      catalog.promotedTools(namespace, '').some(({ entry }) => entry?.name === name),
    onChange: (namespace) => deps.directory.toolsChanged(namespace),
    onUnavailable: ({ namespace, name }, { reason, message }) =>
      deps.log.warn({ namespace, capability: name, reason }, `the tool of a Capability cannot be called: ${message}`),
    create: (capability, usable) => executedCapability(capability, usable, { ...execution, clock }),
  });
}

interface Execution extends EgressHostsDeps {
  circuits: HostCircuits;
  sessions: SessionPool<GatewaySession>;
  tokens: OAuthTokens;
}

/** Without egress, only capabilities with a server of the platform are usable. */
const NO_EGRESS: EgressHostsDeps['files'] = {
  current: async () => {
    throw new TypeError('a capability without egress is not usable');
  },
};

function openExecution({ egress, deliveryTokens, clock, draining, metrics }: CapabilityToolsDeps): Execution {
  const files =
    egress === undefined
      ? NO_EGRESS
      : new EgressEndpoints({ folder: egress.endpoints, tokenFile: egress.tokenFile, clock });
  const sessions = new SessionPool<GatewaySession>(clock, draining);
  metrics.watch('temper_mcp_sessions', {}, () => sessions.size);
  const tokens = new OAuthTokens({ files, deliveryTokens, clock });
  return { files, deliveryTokens, circuits: new HostCircuits(clock), sessions, tokens };
}

/** How the tool of a capability is executed. */
export function executedCapability(
  { tool: { name }, namespace, backend }: BrokeredCapability,
  { url, connection, server }: UsableCapability,
  execution: Execution & Pick<CapabilityToolsDeps, 'clock'>,
): Pick<BrokeredTool, 'requests' | 'execute'> {
  const { circuits, sessions, tokens, clock } = execution;
  // A call that fails to load it has the error.
  if (backend.mcp !== undefined) loadMcpClient().catch(() => undefined);
  const reached =
    server === undefined
      ? { url, connection, hosts: reachableHosts(url, connection, execution) }
      : platformEndpoint({ name: server, url }, namespace);
  // A Connection ties the host to the namespace; without one, the agent itself must be allowed to reach it.
  const network = { kind: 'Network', host: url.hostname, port: portOf(url) } as const;
  return {
    requests: () => (connection === undefined && server === undefined ? [network] : []),
    execute: (input, delivery, op) =>
      circuits.during(delivery.claims.agentUid, url.host, async () => {
        const { http, mcp, a2a } = backend;
        const endpoint = { name, ...reached };
        if (a2a !== undefined)
          return callA2aTool({ ...endpoint, kind: 'a2a', backend: a2a }, input, delivery, { clock, tokens }, op);
        if (mcp !== undefined)
          return callMcpTool(
            { ...endpoint, kind: 'mcp', backend: mcp },
            input,
            delivery,
            { sessions, clock, tokens },
            op,
          );
        if (http === undefined) throw new TypeError(`${name} has no backend`);
        return callHttpTool({ ...endpoint, backend: http }, input, delivery, { clock, tokens }, op);
      }),
  };
}
