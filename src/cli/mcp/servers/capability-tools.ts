import { GRANTABLE_CATEGORIES } from '../../../api/v1alpha1/actions.ts';
import type { Capability, CapabilitySpec } from '../../../api/v1alpha1/capability.ts';
import { capabilityDescriptor, capabilitySchemaProblem } from '../../../discovery/capability-descriptor.ts';
import { missingRequirements } from '../../../discovery/requirements.ts';
import { builtInNames } from '../../../engine/built-in.ts';
import { printable } from '../../../lib/printable.ts';
import { hostsOfTool } from '../../../mcp/client/read-servers.ts';
import { pinnedDigest } from '../../../mcp/client/tools/listed-tool.ts';
import type { OfferedTool } from '../../../mcp/client/tools/server-tools.ts';
import type { AcceptedServer } from '../../../standalone/team/mcp-tools.ts';

type CapabilityTool = NonNullable<CapabilitySpec['tool']>;
type McpBackend = NonNullable<NonNullable<CapabilitySpec['backend']>['mcp']>;

/** A Capability whose tool an MCP server executes. */
interface McpCapability {
  readonly metadata: Capability['metadata'];
  readonly spec: CapabilitySpec;
  readonly tool: CapabilityTool;
  readonly mcp: McpBackend;
}

/** Names that a Capability cannot have. */
interface ToolNames {
  /** Of built-in tools and of other Capabilities. */
  taken: Set<string>;
  /** Of the accepted tools. */
  accepted: ReadonlySet<string>;
}

export interface ServersWithCapabilities {
  servers: AcceptedServer[];
  /** Why the other capabilities cannot be used in this run. */
  problems: string[];
}

/**
 * Adds the tools of Capability objects to the servers that execute them. A manifest only names a tool that its user accepted; one with the
 * name of that tool stands in place of it.
 */
export function withCapabilities(
  servers: readonly AcceptedServer[],
  capabilities: readonly Capability[],
): ServersWithCapabilities {
  const names: ToolNames = {
    taken: new Set(builtInNames()),
    accepted: new Set(servers.flatMap(({ tools }) => tools.map(({ name }) => name))),
  };
  const added = new Map<AcceptedServer, OfferedTool[]>();
  const problems: string[] = [];
  for (const capability of capabilities.flatMap(mcpCapabilities)) {
    const found = offeredFor(capability, servers, names);
    if (typeof found === 'string') {
      problems.push(`Capability/${printable(capability.metadata.name, 80)} cannot be used: ${found}`);
      continue;
    }
    names.taken.add(found.offered.descriptor.name);
    added.set(found.server, [...(added.get(found.server) ?? []), found.offered]);
  }
  return { servers: servers.map((server) => withOffered(server, added.get(server) ?? [])), problems };
}

function withOffered(server: AcceptedServer, added: readonly OfferedTool[]): AcceptedServer {
  const names = new Set(added.map(({ descriptor }) => descriptor.name));
  const kept = server.offered.filter(({ descriptor }) => !names.has(descriptor.name));
  return { ...server, offered: [...kept, ...added] };
}

function mcpCapabilities({ metadata, spec }: Capability): McpCapability[] {
  const { tool, backend } = spec;
  return tool === undefined || backend?.mcp === undefined ? [] : [{ metadata, spec, tool, mcp: backend.mcp }];
}

function offeredFor(
  { spec, tool, mcp }: McpCapability,
  servers: readonly AcceptedServer[],
  names: ToolNames,
): { server: AcceptedServer; offered: OfferedTool } | string {
  const { connection, digest, tool: remoteName = tool.name } = mcp;
  const server = serverFor(mcp, servers);
  if (typeof server === 'string') return server;
  const { name } = server.server;
  if (connection !== undefined && connection !== name)
    return `its connection is "${connection}", and the server at its url is "${name}" in mcp.yaml`;
  const accepted = server.tools.find((one) => one.remoteName === remoteName);
  if (accepted === undefined)
    return `no user accepted tool "${printable(remoteName, 80)}" of MCP server "${name}"; see temper mcp tools ${name}`;
  if (digest !== undefined && digest !== pinnedDigest(accepted))
    return `its digest is not that of tool "${printable(remoteName, 80)}" as the user accepted it`;
  // A grant of another kind opens their tools at every level.
  if (GRANTABLE_CATEGORIES.has(tool.category)) return `its category is ${tool.category}; use another one`;
  const isOfAnother = names.accepted.has(tool.name) && tool.name !== accepted.name;
  if (isOfAnother || names.taken.has(tool.name)) return `another tool is named "${tool.name}"`;
  const missing = missingOf(spec, servers, new Set([...names.taken, ...names.accepted]));
  if (missing !== undefined) return `it requires ${missing}, which this run does not have`;
  const problem = capabilitySchemaProblem(tool);
  const descriptor = { ...capabilityDescriptor(spec, tool, 'Mcp'), ...hostsOfTool(server.server, accepted) };
  return problem ?? { server, offered: { tool: accepted, descriptor } };
}

/** The server with the name or at the URL, or why there is none. */
function serverFor({ url, server: name }: McpBackend, servers: readonly AcceptedServer[]): AcceptedServer | string {
  const address = url === undefined ? undefined : new URL(url).href;
  const found = servers.find(({ server }) =>
    name === undefined ? 'url' in server && server.url === address : server.name === name,
  );
  const which = name === undefined ? `at ${printable(address ?? '', 300)}` : `and the name "${printable(name, 80)}"`;
  return found ?? `mcp.yaml has no server with accepted tools ${which}`;
}

function missingOf(
  { requiredSecrets = [], requiredTools = [] }: CapabilitySpec,
  servers: readonly AcceptedServer[],
  names: ReadonlySet<string>,
): string | undefined {
  const { connections, tools } = missingRequirements(
    { connections: requiredSecrets, tools: requiredTools },
    {
      hasConnection: (name) => servers.some(({ server }) => server.name === name),
      hasTool: (name) => names.has(name),
    },
  );
  const [secret] = connections;
  if (secret !== undefined) return `connection ${secret}`;
  const [tool] = tools;
  return tool === undefined ? undefined : `tool ${printable(tool, 80)}`;
}
