import { DEFAULT_ACTION, GRANTABLE_CATEGORIES } from '../../../api/v1alpha1/actions.ts';
import type { Capability, CapabilitySpec } from '../../../api/v1alpha1/capability.ts';
import { topicsOf } from '../../../discovery/entry.ts';
import { builtInNames } from '../../../engine/built-in.ts';
import type { JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { OfferedTool } from '../../../mcp/client/tools/server-tools.ts';
import type { AcceptedServer } from '../../../standalone/team/mcp-tools.ts';
import type { ToolDescriptor } from '../../../tools/contract.ts';
import { validateSchema } from '../../../tools/json-schema/compiler.ts';

type CapabilityTool = NonNullable<CapabilitySpec['tool']>;
type McpBackend = NonNullable<NonNullable<CapabilitySpec['backend']>['mcp']>;

/** A Capability whose tool an MCP server executes. */
interface McpCapability {
  readonly metadata: Capability['metadata'];
  readonly spec: CapabilitySpec;
  readonly tool: CapabilityTool;
  readonly mcp: McpBackend;
}

export interface ServersWithCapabilities {
  servers: AcceptedServer[];
  /** Why the other capabilities cannot be used in this run. */
  problems: string[];
}

/** Adds the tools of Capability objects to the servers that execute them. A manifest only names a tool that its user accepted. */
export function withCapabilities(
  servers: readonly AcceptedServer[],
  capabilities: readonly Capability[],
): ServersWithCapabilities {
  const taken = new Set([...builtInNames(), ...servers.flatMap(({ tools }) => tools.map(({ name }) => name))]);
  const added = new Map<AcceptedServer, OfferedTool[]>();
  const problems: string[] = [];
  for (const capability of capabilities.flatMap(mcpCapabilities)) {
    const found = offeredFor(capability, servers, taken);
    if (typeof found === 'string') {
      problems.push(`Capability/${printable(capability.metadata.name, 80)} cannot be used: ${found}`);
      continue;
    }
    taken.add(found.offered.descriptor.name);
    added.set(found.server, [...(added.get(found.server) ?? []), found.offered]);
  }
  const all = servers.map((server) => ({ ...server, offered: [...server.offered, ...(added.get(server) ?? [])] }));
  return { servers: all, problems };
}

/** Whether an MCP server executes the tool of the Capability. */
export function isOfMcpServer({ spec }: Capability): boolean {
  return spec.tool !== undefined && spec.backend?.mcp !== undefined;
}

function mcpCapabilities({ metadata, spec }: Capability): McpCapability[] {
  const { tool, backend } = spec;
  return tool === undefined || backend?.mcp === undefined ? [] : [{ metadata, spec, tool, mcp: backend.mcp }];
}

function offeredFor(
  { spec, tool, mcp }: McpCapability,
  servers: readonly AcceptedServer[],
  taken: ReadonlySet<string>,
): { server: AcceptedServer; offered: OfferedTool } | string {
  const { url, connection, tool: remoteName = tool.name } = mcp;
  const address = new URL(url).href;
  const server = servers.find((one) => 'url' in one.server && one.server.url === address);
  if (server === undefined) return `mcp.yaml has no server with accepted tools at ${printable(address, 300)}`;
  const { name } = server.server;
  if (connection !== undefined && connection !== name)
    return `its connection is "${connection}", and the server at its url is "${name}" in mcp.yaml`;
  const accepted = server.tools.find((one) => one.remoteName === remoteName);
  if (accepted === undefined)
    return `no user accepted tool "${printable(remoteName, 80)}" of MCP server "${name}"; see temper mcp tools ${name}`;
  // A grant of another kind opens their tools at every level.
  if (GRANTABLE_CATEGORIES.has(tool.category)) return `its category is ${tool.category}; use another one`;
  if (taken.has(tool.name)) return `another tool is named "${tool.name}"`;
  const missing = missingOf(spec, servers, taken);
  if (missing !== undefined) return `it requires ${missing}, which this run does not have`;
  const problem = schemaProblem(tool);
  return problem ?? { server, offered: { tool: accepted, descriptor: descriptorOf(spec, tool) } };
}

function missingOf(
  { requiredSecrets = [], requiredTools = [] }: CapabilitySpec,
  servers: readonly AcceptedServer[],
  tools: ReadonlySet<string>,
): string | undefined {
  const secret = requiredSecrets.find((name) => !servers.some(({ server }) => server.name === name));
  if (secret !== undefined) return `connection ${secret}`;
  const tool = requiredTools.find((name) => !tools.has(name));
  return tool === undefined ? undefined : `tool ${printable(tool, 80)}`;
}

function schemaProblem({ inputSchema, outputSchema }: CapabilityTool): string | undefined {
  for (const [what, schema] of Object.entries({ inputSchema, outputSchema })) {
    if (schema === undefined) continue;
    const found = validateSchema(schema as JsonObject, what).find(({ problem }) => problem !== 'unknown-keyword');
    if (found !== undefined) return printable(found.message, 300);
  }
  return undefined;
}

function descriptorOf(
  spec: CapabilitySpec,
  { name, category, action = DEFAULT_ACTION[category], inputSchema, outputSchema }: CapabilityTool,
): ToolDescriptor {
  const { description, hasSideEffects = true } = spec;
  return {
    name,
    description,
    inputSchema: inputSchema as JsonObject,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonObject }),
    category,
    action,
    sideEffects: hasSideEffects,
    locality: 'Brokered',
    resultOrigin: 'Mcp',
    topics: topicsOf(spec),
  };
}
